"""What the questions to a server have shown. Pure."""

import json
from dataclasses import dataclass, field

from apps.tuning.doctor.prompt_answers import PromptRead, Rendered, Turns
from apps.tuning.doctor.slots_seen import SlotsSeen
from apps.tuning.hooks import NO_DRAFTS, Drafts

COLOURS = ("red", "green")
"""The schema of a question allows an object with one of these as its only value."""

# Those of a batch that is computed when the server hears that its reader is gone.
MOST_TOKENS_AFTER_LEAVING = 3

# Tokens may be late by this much without any proxy: a busy machine, a slow network.
USUAL_DELAY_SECONDS = 0.2
USUAL_DELAY_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of an answer, and whether it began with a thought."""

    text: str
    thought: str
    finish_reason: str
    tokens: int

    @property
    def has_thought(self) -> bool:
        """True if the server names a thought, or passes one on as text."""
        return bool(self.thought.strip()) or self.text.lstrip().startswith("<think>")

    @property
    def fits_schema(self) -> bool:
        """True if it is the object that the schema of the question allows."""
        try:
            found = json.loads(self.text)
        except ValueError:
            return False
        return isinstance(found, dict) and [*found] == ["colour"] and found["colour"] in COLOURS


@dataclass(frozen=True, slots=True)
class Thought:
    """How an answer began whose request says nothing of thinking."""

    tokens: int
    """Before the first of its content, or in all."""
    allowed: int
    """The answer's `max_tokens`."""
    seconds: float
    is_cut: bool
    """True if nothing else was written when the tokens were used up."""


@dataclass(frozen=True, slots=True)
class LongText:
    """The longest text that was sent to be embedded."""

    tokens: int
    limit: int | None
    """Tokens that the server takes, where it refused the text."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """When the tokens of a streamed answer came."""

    tokens: int
    generation: float
    """Seconds from the first to the last token, by the server's own clock."""
    arrival: float
    """The same, as they came here."""
    delay: float
    """Seconds that a token came later, on average, than one that is sent on at once."""

    @property
    def speed(self) -> float:
        """Tokens per second that the server wrote."""
        return (self.tokens - 1) / self.generation

    @property
    def is_late(self) -> bool:
        """True if something on the way holds tokens back."""
        each = self.generation / max(1, self.tokens - 1)
        return self.delay > max(USUAL_DELAY_SECONDS, USUAL_DELAY_TOKENS * each)


@dataclass(frozen=True, slots=True)
class Leaving:
    """What became of a streamed answer that was closed at its first token."""

    tokens: int
    """Written after the server could have heard of it."""
    seconds: float
    """That its slot was seen writing them, at least."""
    allowed: int
    """The answer's `max_tokens`."""

    @property
    def is_ignored(self) -> bool:
        """True if the server wrote on."""
        return self.tokens > MOST_TOKENS_AFTER_LEAVING


@dataclass(frozen=True, slots=True)
class Silence:
    """A question that had no answer."""

    seconds: float
    slots: SlotsSeen
    """What the slots did then."""

    @property
    def is_stuck(self) -> bool:
        """True unless others may be using all slots."""
        return self.slots not in {SlotsSeen.BUSY, SlotsSeen.UNKNOWN}


@dataclass(slots=True)
class Answers:
    """One field a question. None or "": not asked, or not answered."""

    notes: list[str] = field(default_factory=list)
    """Why questions were not asked or not answered, as sentences."""
    has_token: bool = False
    """True if the first question was answered."""
    silence: Silence | None = None
    """How long it was not."""
    first: PromptRead | None = None
    """A prompt whose beginning no cache has seen."""
    again: PromptRead | None = None
    """With the same beginning as the prompt before."""
    again_if_asked: PromptRead | None = None
    """The same, where the request itself asks for the cache."""
    changed: PromptRead | None = None
    """The prompt of `again` with another first character."""
    next_turn: PromptRead | None = None
    """The chat of `again` with its answer and a second message."""
    turns: Turns | None = None
    """That chat, as the template writes it."""
    rendered: Rendered | None = None
    shows_tools: bool | None = None
    """True if the rendered prompt names the tool of the request."""
    tools_refused: str = ""
    tool_prompt_tokens: int | None = None
    """Tokens of the short question with one tool, where they did not fit into a slot."""
    thinking_off: Answer | None = None
    """The answer to a request that turns thinking off."""
    thought: Thought | None = None
    schema: Answer | None = None
    """The answer to a request with a JSON schema, see `COLOURS`."""
    drafts: Drafts = NO_DRAFTS
    """Of all answers together."""
    drafts_with: str = ""
    """How the server drafts, as its slots report; "": not at all, or not reported."""
    arrival: Arrival | None = None
    leaving: Leaving | None = None
    norm: float | None = None
    """Euclidean length of a vector."""
    likeness: float | None = None
    """Cosine similarity of two texts that have the first word alone in common."""
    embedding_refused: str = ""
    long_text: LongText | None = None
