"""What the questions to a server have shown. Pure."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PromptRead:
    """How a prompt was processed whose beginning the server had just processed."""

    tokens: int
    cached: int
    """Tokens of it that came from the prompt cache."""
    seconds: float
    """Until the first token of the answer."""

    @property
    def is_cached(self) -> bool:
        """True if at least half came from the cache: nearly all of the prompt was the same."""
        return 2 * self.cached >= self.tokens


@dataclass(frozen=True, slots=True)
class Rendered:
    """The same messages, rendered twice by the chat template."""

    characters: int
    same: int
    """Characters from the beginning that are the same in both."""
    apart: float
    """Seconds between both."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of an answer, and whether it began with a thought."""

    text: str
    thought: str
    finish_reason: str
    tokens: int


@dataclass(frozen=True, slots=True)
class LongText:
    """The longest text that was sent to be embedded."""

    tokens: int
    limit: int | None
    """Tokens that the server takes, where it refused the text."""


@dataclass(slots=True)
class Answers:
    """One field a question. None or "": not asked, or not answered."""

    notes: list[str] = field(default_factory=list)
    """Why questions were not asked or not answered, as sentences."""
    again: PromptRead | None = None
    """With the same beginning as the prompt before."""
    again_if_asked: PromptRead | None = None
    """The same, where the request itself asks for the cache."""
    rendered: Rendered | None = None
    shows_tools: bool | None = None
    """True if the rendered prompt names the tool of the request."""
    tools_refused: str = ""
    tool_prompt_tokens: int | None = None
    """Tokens of the short question with one tool, where they did not fit into a slot."""
    thinking_off: Answer | None = None
    """The answer to a request that turns thinking off."""
    schema: Answer | None = None
    """The answer to a request with a JSON schema, see `COLOURS`."""
    norm: float | None = None
    """Euclidean length of a vector."""
    embedding_refused: str = ""
    long_text: LongText | None = None


COLOURS = ("red", "green")
"""The schema allows an object with one of these as its only value."""
