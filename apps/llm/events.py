"""Events of a streamed answer. The last event of a complete answer is Done."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from apps.core.schemas.json_types import JsonValue


@dataclass(frozen=True, slots=True)
class Started:
    """The server's name for this answer, of requests with `reasoning_control`."""

    completion_id: str


@dataclass(frozen=True, slots=True)
class Progress:
    """The prompt is being read, in tokens. The first one means that a slot has started."""

    total: int
    cached: int
    processed: int


@dataclass(frozen=True, slots=True)
class Reasoning:
    text: str


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the answer: usually one token, never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A piece of a call, as the server streams it: `index`, perhaps `id`, part of `function`."""

    delta: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of an answer. `tells_cached`: cached tokens are reported, else they are zero."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    tokens_per_second: float | None = None
    tells_cached: bool = field(default=True, compare=False)
    is_estimated: bool = field(default=False, compare=False)
    """True if the server reported nothing: counted by pieces and characters."""
    drafted: int = 0
    """Tokens that a draft proposed; 0: none, or not reported."""
    draft_accepted: int = 0
    prefilled: int = field(default=0, compare=False)
    """Prompt tokens that the server processed, and how long that took; 0: not reported."""
    prefill_ms: float = field(default=0.0, compare=False)

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum of two answers, with the speed of the later one."""
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            other.tokens_per_second,
            self.tells_cached and other.tells_cached,
            self.is_estimated or other.is_estimated,
            self.drafted + other.drafted,
            self.draft_accepted + other.draft_accepted,
            self.prefilled + other.prefilled,
            self.prefill_ms + other.prefill_ms,
        )


@dataclass(frozen=True, slots=True)
class Done:
    """`stop`: the model ended its turn; `length`: max_tokens or the context; `tool_calls`."""

    finish_reason: str


Event = Started | Progress | Reasoning | Token | ToolCall | Usage | Done
