"""What goes into the prompt, and when the beginning is cut off. Pure.

The server reuses what it has read as far as a prompt begins with the same tokens. So the system
prompt comes first with the same bytes every time, the history is only ever appended to, and when
the context is nearly full the beginning is cut once and deeply, after which the prompt's start
stays as it is for many turns. Turns that a person pinned, and a summary of what was cut, then stand
between the system prompt and what was kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from apps.llm.client import Message

NEARLY_FULL = 0.85
AFTER_CUT = 0.5
# Before the server has counted anything: a safe guess for English is more bytes per token.
TOKENS_PER_BYTE = 1 / 3
TEMPLATE_TOKENS = 8  # what a chat template puts around each message
ANSWER_TOKENS = 2048
MARGIN_TOKENS = 16
RECALL = "Summarise what we have said so far."


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the branch."""

    id: int
    role: str
    content: str
    reasoning: str = ""
    """What the model thought before it answered."""
    pinned: bool = False
    """Kept when the beginning is cut, together with its question or answer."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a model wrote about the beginning of a branch."""

    text: str
    upto: int
    """The last message it covers."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What the server counted for an earlier answer: the prompt and that answer together."""

    tokens: int
    upto: int
    """The answer's id."""
    kept_from: int | None = None
    """The first message of that prompt, where its beginning had been cut."""


@dataclass(frozen=True, slots=True)
class Prompt:
    messages: list[Message]
    tokens: int
    """Estimated, exact as far as the server has counted."""
    kept_from: int | None
    """The first message kept, None while nothing is cut."""


def build(
    system: str | None,
    turns: Sequence[Turn],
    *,
    context: int | None,
    counted: Counted | None = None,
    summary: Summary | None = None,
    keep_reasoning: bool = False,
    must_cut: bool = False,
) -> Prompt:
    """The prompt for the last question of `turns`.

    Args:
        turns: the whole branch from its root; the last one is the question.
        context: tokens a slot holds; None where nobody knows, then nothing is ever cut.
        counted: of the newest answer in the branch that has numbers. Its cut stays.
        summary: put in place of what is cut, where it covers a part of that.
        keep_reasoning: for templates that preserve it; others drop it and would make the server
            read everything after it again.
        must_cut: the server found the prompt too long, whatever was estimated.
    """
    start = _index(turns, counted.kept_from) if counted else 0
    tokens = _estimate(system, turns, start, counted)
    if context is not None and (must_cut or tokens > NEARLY_FULL * context):
        start = _cut(system, turns, start, counted, int(AFTER_CUT * context))
        tokens = _estimate(system, turns, start, counted)
    kept_from = turns[start].id if start else None
    pinned = _kept(turns[:start])
    recalled = _recalled(turns, start, summary)
    if counted is None or kept_from != counted.kept_from:  # else they have been counted
        size = _size(None, pinned) + sum(len(m["content"].encode()) for m in recalled)
        tokens += _guess(size, len(pinned) + len(recalled), TOKENS_PER_BYTE)
    messages = _messages(system, recalled, [*pinned, *turns[start:]], keep_reasoning)
    return Prompt(messages, tokens, kept_from)


def _kept(cut: Sequence[Turn]) -> list[Turn]:
    """The pinned turns of what was cut: always a question with its answer, as templates want."""
    pairs = [
        (question, answer)
        for question, answer in pairwise(cut)
        if question.role == "user" and answer.role == "assistant"
    ]
    return [turn for pair in pairs if any(turn.pinned for turn in pair) for turn in pair]


def _recalled(turns: Sequence[Turn], start: int, summary: Summary | None) -> list[Message]:
    """The summary as a turn of its own: the system prompt stays as it is, byte by byte."""
    if summary is None or not start or summary.upto not in {turn.id for turn in turns[:start]}:
        return []
    return [
        {"role": "user", "content": RECALL},
        {"role": "assistant", "content": summary.text},
    ]


def answer_budget(prompt: Prompt, *, context: int | None, wanted: int | None = None) -> int:
    """`max_tokens`: what is wanted, within what the slot has left; always at least one."""
    budget = wanted or ANSWER_TOKENS
    if context is not None:
        budget = min(budget, context - prompt.tokens - MARGIN_TOKENS)
    return max(1, budget)


def _cut(
    system: str | None, turns: Sequence[Turn], start: int, counted: Counted | None, budget: int
) -> int:
    """The first question from which on everything fits the budget; else the newest question."""
    questions = [
        index
        for index in range(start + 1, len(turns))
        if turns[index].role == "user" and turns[index - 1].role == "assistant"
    ]
    for index in questions:
        if _estimate(system, turns, index, counted) <= budget:
            return index
    return questions[-1] if questions else start


def _estimate(
    system: str | None, turns: Sequence[Turn], start: int, counted: Counted | None
) -> int:
    """Tokens of the system prompt and the turns from `start` on."""
    if counted is None:
        return _guess(_size(system, turns[start:]), len(turns) - start + 1, TOKENS_PER_BYTE)
    counted_start = _index(turns, counted.kept_from)
    counted_end = _index(turns, counted.upto) + 1
    counted_size = _size(system, turns[counted_start:counted_end])
    rate = counted.tokens / counted_size if counted_size else TOKENS_PER_BYTE
    new = turns[counted_end:]
    if start == counted_start:
        return counted.tokens + _guess(_size(None, new), len(new), rate)
    return _guess(_size(system, turns[start:]), len(turns) - start + 1, rate)


def _guess(size: int, messages: int, rate: float) -> int:
    return round(size * rate) + messages * TEMPLATE_TOKENS


def _size(system: str | None, turns: Sequence[Turn]) -> int:
    """Bytes in UTF-8: closer to tokens than characters are, in scripts other than Latin."""
    return len((system or "").encode()) + sum(len(turn.content.encode()) for turn in turns)


def _index(turns: Sequence[Turn], turn_id: int | None) -> int:
    return next((i for i, turn in enumerate(turns) if turn.id == turn_id), 0)


def _messages(
    system: str | None,
    recalled: Sequence[Message],
    turns: Sequence[Turn],
    keep_reasoning: bool,
) -> list[Message]:
    """Answers that stayed empty are left out; the questions around one become one message.

    Many chat templates refuse two messages of the same role in a row.
    """
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    messages += recalled
    for turn in turns:
        if turn.role == "assistant" and not turn.content:
            continue
        if messages and messages[-1]["role"] == turn.role == "user":
            messages[-1] = {
                "role": "user",
                "content": f"{messages[-1]['content']}\n\n{turn.content}",
            }
        elif keep_reasoning and turn.reasoning:
            messages.append(
                {"role": turn.role, "content": turn.content, "reasoning_content": turn.reasoning}
            )
        else:
            messages.append({"role": turn.role, "content": turn.content})
    return messages
