"""The data that a prompt is made of. Pure."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PromptCall:
    """A tool call exactly as the model wrote it."""

    id: str
    name: str
    arguments: str

    def as_sent(self) -> dict[str, Any]:
        """Return it in the OpenAI API's shape, with arguments that every server accepts."""
        function = {"name": self.name, "arguments": _as_json_object(self.arguments)}
        return {"id": self.id, "type": "function", "function": function}


def _as_json_object(arguments: str) -> str:
    """Return arguments unchanged if they are a JSON object, else an object that holds them.

    llama-server answers 500 to a history with anything that is not JSON, and templates iterate
    over its names: one bad call would end its conversation.
    """
    try:
        value = json.loads(arguments or "{}", parse_constant=_refuse)
        if isinstance(value, dict):
            json.dumps(value, ensure_ascii=False).encode()  # no half of a surrogate pair
            return arguments or "{}"
    except (ValueError, RecursionError):
        pass
    return json.dumps({"invalid": arguments}, ensure_ascii=False)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON.")


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of the branch, or one step of an answer that called tools."""

    id: int
    role: str
    content: str
    reasoning: str = ""
    pinned: bool = False
    """Kept when the beginning is cut, together with its question or answer."""
    calls: tuple[PromptCall, ...] = ()
    """Of role assistant: the tools it called. Their results follow with the role tool."""
    call_id: str = ""
    """Of role tool: the call that it answers."""
    image_tokens: int = 0
    """Tokens of its images, if they were counted."""


@dataclass(frozen=True, slots=True)
class PromptSummary:
    """A model's summary of the beginning of a branch."""

    text: str
    upto: int
    """The last message it covers."""
    id: int = 0


@dataclass(frozen=True, slots=True)
class CountedPrompt:
    """The tokens that the server counted for an earlier prompt and its answer together."""

    tokens: int
    upto: int
    """The ID of that answer."""
    cut_before_message: int | None = None
    """The first message of that prompt, if its beginning was cut."""
    front_bytes: int = 0
    """Bytes that stood in the place of the cut messages."""
    left_out: frozenset[int] = frozenset()
    """Tool results that the prompt no longer held. They stay out."""
