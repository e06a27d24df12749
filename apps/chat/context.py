"""What goes into the prompt, and when the beginning is cut off. Pure.

The server reuses what it has read as far as a prompt begins with the same tokens. So the system
prompt comes first with the same bytes every time, the history is only ever appended to, and when
the context is nearly full the beginning is cut once and deeply, after which the prompt's start
stays as it is for many turns. Turns that a person pinned, and a summary of what was cut, then stand
between the system prompt and what was kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
    calls: tuple["Call", ...] = ()
    """Of an assistant's turn: the tools it called. The results follow as turns of the role tool."""
    call_id: str = ""
    """Of a tool's turn: the call that it answers."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call as the model wrote it, byte by byte."""

    id: str
    name: str
    arguments: str

    def as_sent(self) -> dict[str, Any]:
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}


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
    with_tools: bool = True,
    definitions: int = 0,
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
        with_tools: False for templates without tools: calls and results are then left out.
        definitions: bytes of the definitions of tools, which templates put before the turns.
    """
    if not with_tools:
        turns = [turn for turn in turns if turn.role != "tool" and not turn.calls]
    head = _bytes(system or "") + definitions
    start = _index(turns, counted.kept_from) if counted else 0
    tokens = _estimate(head, turns, start, counted)
    if context is not None and (must_cut or tokens > NEARLY_FULL * context):
        start = _cut(head, turns, start, counted, int(AFTER_CUT * context))
        tokens = _estimate(head, turns, start, counted)
    kept_from = turns[start].id if start else None
    pinned = _kept(turns[:start])
    recalled = _recalled(turns, start, summary)
    if counted is None or kept_from != counted.kept_from:  # else they have been counted
        size = _size(0, pinned) + sum(len(m["content"].encode()) for m in recalled)
        tokens += _guess(size, len(pinned) + len(recalled), TOKENS_PER_BYTE)
    messages = _messages(system, recalled, [*pinned, *turns[start:]], keep_reasoning)
    return Prompt(messages, tokens, kept_from)


def _kept(cut: Sequence[Turn]) -> list[Turn]:
    """The pinned turns of what was cut: always a question with its answer, as templates want."""
    exchanges: list[list[Turn]] = []
    for turn in cut:
        if turn.role == "user" or not exchanges:
            exchanges.append([])
        exchanges[-1].append(turn)
    return [
        turn
        for exchange in exchanges
        if exchange[0].role == "user" and exchange[-1].role == "assistant"
        if any(turn.pinned for turn in exchange)
        for turn in exchange
    ]


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


def _cut(head: int, turns: Sequence[Turn], start: int, counted: Counted | None, budget: int) -> int:
    """The first question from which on everything fits the budget; else the newest question."""
    questions = [
        index
        for index in range(start + 1, len(turns))
        if turns[index].role == "user" and turns[index - 1].role == "assistant"
    ]
    for index in questions:
        if _estimate(head, turns, index, counted) <= budget:
            return index
    return questions[-1] if questions else start


def _estimate(head: int, turns: Sequence[Turn], start: int, counted: Counted | None) -> int:
    """Tokens of the turns from `start` on and of what stands before them, `head` bytes."""
    if counted is None:
        return _guess(_size(head, turns[start:]), len(turns) - start + 1, TOKENS_PER_BYTE)
    counted_start = _index(turns, counted.kept_from)
    counted_end = _index(turns, counted.upto) + 1
    counted_size = _size(head, turns[counted_start:counted_end])
    rate = counted.tokens / counted_size if counted_size else TOKENS_PER_BYTE
    new = turns[counted_end:]
    if start == counted_start:
        return counted.tokens + _guess(_size(0, new), len(new), rate)
    return _guess(_size(head, turns[start:]), len(turns) - start + 1, rate)


def _guess(size: int, messages: int, rate: float) -> int:
    return round(size * rate) + messages * TEMPLATE_TOKENS


def _size(head: int, turns: Sequence[Turn]) -> int:
    """Bytes in UTF-8: closer to tokens than characters are, in scripts other than Latin."""
    called = (call.name + call.arguments for turn in turns for call in turn.calls)
    return head + sum(_bytes(turn.content) for turn in turns) + sum(map(_bytes, called))


def _bytes(text: str) -> int:
    return len(text.encode())


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
    newest = max((i for i, turn in enumerate(turns) if turn.role == "user"), default=-1)
    for place, turn in enumerate(turns):
        if turn.calls or turn.role == "tool":
            # Of the answer in hand every template keeps what was thought between its calls.
            messages.append(_with_calls(turn, keep_reasoning or place > newest))
            continue
        after_tools = bool(messages) and messages[-1]["role"] == "tool"
        if turn.role == "assistant" and not turn.content and not after_tools:
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


def _with_calls(turn: Turn, keep_reasoning: bool) -> Message:
    if turn.role == "tool":
        return {"role": "tool", "content": turn.content, "tool_call_id": turn.call_id}
    called: Message = {
        "role": turn.role,
        "content": turn.content,
        "tool_calls": [call.as_sent() for call in turn.calls],
    }
    if keep_reasoning and turn.reasoning:
        called["reasoning_content"] = turn.reasoning
    return called
