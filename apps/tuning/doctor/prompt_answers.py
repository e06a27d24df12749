"""How prompts were processed, and how the chat template writes them. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PromptRead:
    """How a prompt was processed whose beginning the server had just processed."""

    tokens: int
    cached: int
    """Tokens of it that came from the prompt cache."""
    seconds: float
    """Until the first token of the answer."""
    processing: float | None = None
    """Seconds that the server itself took for the prompt; None: not reported."""

    @property
    def is_cached(self) -> bool:
        """True if at least half came from the cache: nearly all of the prompt was the same."""
        return 2 * self.cached >= self.tokens

    @property
    def reprocessed(self) -> int:
        return self.tokens - self.cached


@dataclass(frozen=True, slots=True)
class Rendered:
    """The same messages, rendered twice by the chat template."""

    characters: int
    same: int
    """Characters from the beginning that are the same in both."""
    apart: float
    """Seconds between both."""

    @property
    def moves(self) -> bool:
        """True if the second half of a prompt, at least, changes with the time."""
        return 2 * self.same < self.characters


@dataclass(frozen=True, slots=True)
class Turns:
    """A chat, rendered with one message, and with its answer and a second message."""

    characters: int
    """Up to the end of the first message."""
    same: int
    """Those of them, from the beginning, that are the same in both."""
    keeps_reasoning: bool
    """True if the second prompt has the thought of the first answer."""

    @property
    def moves(self) -> bool:
        """True if the first message is no longer where it was."""
        return self.same < self.characters
