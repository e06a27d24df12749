"""What goes into the prompt, and when its beginning is cut. Pure.

The server reuses the prompt cache as far as a prompt begins with the same tokens. So the system
prompt comes first with the same bytes every time, and the history is only appended to. When the
context is nearly full, the beginning is cut once and deeply, after which the start of the prompt
stays the same for many turns. Pinned messages and a summary of what was cut then stand between the
system prompt and the messages that were kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from apps.chat.prompt.messages import CountedPrompt, PromptMessage, PromptSummary, render
from apps.chat.prompt.token_estimate import (
    TOKENS_PER_BYTE,
    estimate,
    index_of,
    size_of,
    text_bytes,
    token_rate,
    tokens_of,
)
from apps.llm.client import Message

NEARLY_FULL = 0.85
AFTER_CUT = 0.5
# Share of the context for pinned messages: the newest fit, or each turn would need a cut.
PINNED_SHARE = 0.25
RECALL = "Summarise what we have said so far."
LEFT_OUT = "[Left out: the context is full. Call it again if you need it.]"


@dataclass(frozen=True, slots=True)
class Front:
    """The messages between the system prompt and the first message kept, after a cut."""

    summary: PromptSummary | None = None
    pinned: Sequence[PromptMessage] = ()

    @property
    def messages(self) -> list[Message]:
        """The summary as an exchange: the system prompt stays the same, byte by byte."""
        if self.summary is None:
            return []
        return [
            {"role": "user", "content": RECALL},
            {"role": "assistant", "content": self.summary.text},
        ]

    @property
    def size(self) -> int:
        return size_of(self.pinned) + sum(text_bytes(m["content"]) for m in self.messages)

    @property
    def tokens(self) -> int:
        return tokens_of(self.size, len(self.pinned) + len(self.messages))


@dataclass(frozen=True, slots=True)
class Prompt:
    messages: list[Message]
    tokens: int
    """An estimate, exact as far as the server has counted."""
    cut_before_message: int | None
    """The first message kept; None while nothing is cut."""
    front: Front = field(default_factory=Front)
    left_out: frozenset[int] = frozenset()
    """Results of tools of the newest answer that are no longer in the prompt."""


def build_prompt(
    system: str | None,
    messages: Sequence[PromptMessage],
    *,
    context: int | None,
    counted: CountedPrompt | None = None,
    summaries: Sequence[PromptSummary] = (),
    keep_reasoning: bool = False,
    must_cut: bool = False,
    with_tools: bool = True,
    definitions: int = 0,
) -> Prompt:
    """Return the prompt for the last question.

    Args:
        messages: the whole branch from its root; the last one is the question.
        context: tokens per slot; None if unknown, then nothing is ever cut.
        counted: of the newest answer in the branch that has numbers. Its cut stays.
        summaries: the one that covers most of what is cut is put in its place.
        keep_reasoning: for templates that preserve it; others drop it, and the server would have
            to process everything after it again.
        must_cut: the server found the prompt too long, whatever was estimated.
        with_tools: False for templates without tools: calls and results are then left out.
        definitions: bytes of the definitions of tools, which templates put before the messages.
    """
    if not with_tools:
        messages = [m for m in messages if m.role != "tool" and not m.calls]
    draft = _Draft(
        messages=list(messages),
        head=text_bytes(system or "") + definitions,
        counted=counted,
        summaries=summaries,
        max_pinned=None if context is None else int(PINNED_SHARE * context / TOKENS_PER_BYTE),
    )
    if context is not None and (must_cut or draft.tokens > NEARLY_FULL * context):
        draft.cut(AFTER_CUT * context)
        if must_cut or draft.tokens > NEARLY_FULL * context:
            # Within an answer there is nowhere to cut: its oldest results make room.
            draft.leave_out_results(AFTER_CUT * context)
    return draft.render(system, keep_reasoning=keep_reasoning)


@dataclass
class _Draft:
    """A prompt that is made to fit."""

    messages: list[PromptMessage]
    head: int
    counted: CountedPrompt | None
    summaries: Sequence[PromptSummary]
    max_pinned: int | None
    """Bytes."""

    def __post_init__(self) -> None:
        self.left_out = self.counted.left_out if self.counted else frozenset[int]()
        self.messages = [
            replace(m, content=LEFT_OUT) if m.id in self.left_out else m for m in self.messages
        ]
        cut = self.counted.cut_before_message if self.counted else None
        self.start = index_of(self.messages, cut)
        self.front = self._front()
        self.tokens = estimate(self.head, self.messages, self.start, self.counted)
        if self.counted is None:
            self.tokens += self.front.tokens
        else:  # the server has counted what stood in front then
            self.tokens += round((self.front.size - self.counted.front_bytes) * TOKENS_PER_BYTE)

    def cut(self, target: float) -> None:
        """Start at the first later question with which the prompt has at most `target` tokens."""
        for place in range(self.start + 1, len(self.messages)):
            follows_answer = self.messages[place - 1].role == "assistant"
            if self.messages[place].role != "user" or not follows_answer:
                continue
            self.start = place
            self.front = self._front()
            kept = estimate(self.head, self.messages, place, self.counted)
            self.tokens = kept + self.front.tokens
            if self.tokens <= target:
                return

    def leave_out_results(self, target: float) -> None:
        """Replace results of the newest answer, the oldest first, until the prompt fits."""
        rate = token_rate(self.head, self.messages, self.counted)
        newest = max((i for i, m in enumerate(self.messages) if m.role == "user"), default=0)
        for place in range(max(self.start, newest), len(self.messages)):
            message = self.messages[place]
            if message.role != "tool" or message.id in self.left_out:
                continue
            saved = text_bytes(message.content) - text_bytes(LEFT_OUT)
            if len(message.content) <= len(LEFT_OUT):
                continue
            self.messages[place] = replace(message, content=LEFT_OUT)
            self.left_out |= {message.id}
            self.tokens -= round(saved * rate)
            if self.tokens <= target:
                return

    def render(self, system: str | None, *, keep_reasoning: bool) -> Prompt:
        kept = [*self.front.pinned, *self.messages[self.start :]]
        return Prompt(
            render(system, self.front.messages, kept, keep_reasoning=keep_reasoning),
            self.tokens,
            self.messages[self.start].id if self.start else None,
            self.front,
            self.left_out,
        )

    def _front(self) -> Front:
        if not self.start:
            return Front()
        cut = self.messages[: self.start]
        places = {message.id: place for place, message in enumerate(cut)}
        covering = [summary for summary in self.summaries if summary.upto in places]
        summary = max(covering, key=lambda summary: places[summary.upto], default=None)
        return Front(summary, _pinned_exchanges(cut, self.max_pinned))


def _pinned_exchanges(cut: Sequence[PromptMessage], max_bytes: int | None) -> list[PromptMessage]:
    """Return pinned messages, always a question with its answer, because templates want both."""
    exchanges: list[list[PromptMessage]] = []
    for message in cut:
        if message.role == "user" or not exchanges:
            exchanges.append([])
        exchanges[-1].append(message)
    pinned = [
        exchange
        for exchange in exchanges
        if exchange[0].role == "user" and exchange[-1].role == "assistant"
        if any(message.pinned for message in exchange)
    ]
    sizes = accumulate(size_of(exchange) for exchange in reversed(pinned))
    fitting = sum(max_bytes is None or size <= max_bytes for size in sizes)
    return [message for exchange in pinned[len(pinned) - fitting :] for message in exchange]
