"""What goes into the prompt, and when the beginning is cut off. Pure.

The server reuses what it has read as far as a prompt begins with the same tokens. So the system
prompt comes first with the same bytes every time, the history is only ever appended to, and when
the context is nearly full the beginning is cut once and deeply, after which the prompt's start
stays as it is for many turns. Turns that a person pinned, and a summary of what was cut, then stand
between the system prompt and what was kept.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from apps.llm.client import Message

NEARLY_FULL = 0.85
AFTER_CUT = 0.5
# Before the server has counted anything: a safe guess for English is more bytes per token.
TOKENS_PER_BYTE = 1 / 3
TEMPLATE_TOKENS = 8  # what a chat template puts around each message
# What an answer is taken to need where nothing limits it: for admission, never for the request.
ANSWER_TOKENS = 2048
# Of a slot's share where slots share one cache: the rest is its prompt's.
SHARE_OF_SLOT = 0.75
# Pinned turns may take so much of the context: the newest of them, or each turn would need a cut.
PINNED_SHARE = 0.25
RECALL = "Summarise what we have said so far."
LEFT_OUT = "[Left out: the context is full. Call it again if you need it.]"


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
    image_tokens: int = 0
    """What its pictures come to, as far as that is known."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call as the model wrote it, byte by byte."""

    id: str
    name: str
    arguments: str

    def as_sent(self) -> dict[str, Any]:
        """As servers take it back, byte by byte where they do."""
        function = {"name": self.name, "arguments": _as_object(self.arguments)}
        return {"id": self.id, "type": "function", "function": function}


def _as_object(arguments: str) -> str:
    """A JSON object, which models may fail to write.

    llama-server answers 500 to a history with anything that is no JSON, and templates go through
    the names in it: what a model once wrote wrong would end its conversation.
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
    raise ValueError(f"{constant} is no JSON.")


@dataclass(frozen=True, slots=True)
class Summary:
    """What a model wrote about the beginning of a branch."""

    text: str
    upto: int
    """The last message it covers."""
    id: int = 0


@dataclass(frozen=True, slots=True)
class Counted:
    """What the server counted for an earlier answer: the prompt and that answer together."""

    tokens: int
    upto: int
    """The answer's id."""
    cut_before_message: int | None = None
    """The first message of that prompt, where its beginning had been cut."""
    front: int = 0
    """Bytes that then stood in the place of what was cut."""
    left_out: frozenset[int] = frozenset()
    """Turns of tools whose results that prompt no longer held. They stay away."""


@dataclass(frozen=True, slots=True)
class Front:
    """What stands between the system prompt and the first message kept, once there was a cut."""

    summary: Summary | None = None
    pinned: Sequence[Turn] = ()

    @property
    def messages(self) -> list[Message]:
        """The summary is a turn of its own: the system prompt stays as it is, byte by byte."""
        if self.summary is None:
            return []
        return [
            {"role": "user", "content": RECALL},
            {"role": "assistant", "content": self.summary.text},
        ]

    @property
    def size(self) -> int:
        return _size(0, self.pinned) + sum(_bytes(m["content"]) for m in self.messages)

    @property
    def tokens(self) -> int:
        return _guess(self.size, len(self.pinned) + len(self.messages), TOKENS_PER_BYTE)


@dataclass(frozen=True, slots=True)
class Prompt:
    messages: list[Message]
    tokens: int
    """Estimated, exact as far as the server has counted."""
    cut_before_message: int | None
    """The first message kept, None while nothing is cut."""
    front: Front = Front()
    left_out: frozenset[int] = frozenset()
    """Turns of tools of the answer in hand whose results are not in it any more."""


def build(
    system: str | None,
    turns: Sequence[Turn],
    *,
    context: int | None,
    counted: Counted | None = None,
    summaries: Sequence[Summary] = (),
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
        summaries: of those that cover a part of what is cut, the one of most is put in its place.
        keep_reasoning: for templates that preserve it; others drop it and would make the server
            read everything after it again.
        must_cut: the server found the prompt too long, whatever was estimated.
        with_tools: False for templates without tools: calls and results are then left out.
        definitions: bytes of the definitions of tools, which templates put before the turns.
    """
    if not with_tools:
        turns = [turn for turn in turns if turn.role != "tool" and not turn.calls]
    left_out = counted.left_out if counted else frozenset()
    turns = [_without_result(turn) if turn.id in left_out else turn for turn in turns]
    head = _bytes(system or "") + definitions
    start = _index(turns, counted.cut_before_message) if counted else 0
    most = int(PINNED_SHARE * context / TOKENS_PER_BYTE) if context is not None else None
    front = _front(turns, start, summaries, most)
    tokens = _estimate(head, turns, start, counted) + _uncounted(front, counted)
    if context is not None and (must_cut or tokens > NEARLY_FULL * context):
        for place in _places_to_cut(turns, start):
            start = place
            front = _front(turns, start, summaries, most)
            tokens = _estimate(head, turns, start, counted) + front.tokens
            if tokens <= AFTER_CUT * context:
                break
        if must_cut or tokens > NEARLY_FULL * context:
            # Within an answer there is nowhere to cut: its oldest results make room.
            rate = _rate(head, turns, counted)
            for place in _results_in_hand(turns, start, left_out):
                shorter = _without_result(turns[place])
                saved = _bytes(turns[place].content) - _bytes(shorter.content)
                tokens -= round(saved * rate)
                turns[place], left_out = shorter, left_out | {shorter.id}
                if tokens <= AFTER_CUT * context:
                    break
    cut_before_message = turns[start].id if start else None
    kept = [*front.pinned, *turns[start:]]
    messages = _messages(system, front.messages, kept, keep_reasoning)
    return Prompt(messages, tokens, cut_before_message, front, left_out)


def _without_result(turn: Turn) -> Turn:
    return replace(turn, content=LEFT_OUT)


def _results_in_hand(turns: Sequence[Turn], start: int, left_out: frozenset[int]) -> list[int]:
    """Where results stand that came since the newest question, the oldest first."""
    newest = max((i for i, turn in enumerate(turns) if turn.role == "user"), default=0)
    return [
        place
        for place in range(max(start, newest), len(turns))
        if turns[place].role == "tool"
        and turns[place].id not in left_out
        and len(turns[place].content) > len(LEFT_OUT)
    ]


def _front(
    turns: Sequence[Turn], start: int, summaries: Sequence[Summary], most: int | None
) -> Front:
    if not start:
        return Front()
    places = {turn.id: place for place, turn in enumerate(turns[:start])}
    covering = [summary for summary in summaries if summary.upto in places]
    summary = max(covering, key=lambda summary: places[summary.upto], default=None)
    return Front(summary, _kept(turns[:start], most))


def _uncounted(front: Front, counted: Counted | None) -> int:
    """Tokens of what stands in front, less what the server has counted there already."""
    if counted is None:
        return front.tokens
    return round((front.size - counted.front) * TOKENS_PER_BYTE)


def _kept(cut: Sequence[Turn], most: int | None) -> list[Turn]:
    """The pinned turns of what was cut: always a question with its answer, as templates want."""
    exchanges: list[list[Turn]] = []
    for turn in cut:
        if turn.role == "user" or not exchanges:
            exchanges.append([])
        exchanges[-1].append(turn)
    pinned = [
        exchange
        for exchange in exchanges
        if exchange[0].role == "user" and exchange[-1].role == "assistant"
        if any(turn.pinned for turn in exchange)
    ]
    sizes = accumulate(_size(0, exchange) for exchange in reversed(pinned))
    fitting = sum(most is None or size <= most for size in sizes)
    return [turn for exchange in pinned[len(pinned) - fitting :] for turn in exchange]


def answer_limit(
    wanted: int | None, *, context: int | None, pool: int | None = None, slots: int = 1
) -> int | None:
    """`max_tokens` of a request; None where it is left to the server.

    It never depends on an estimate of the prompt: a server that knows the prompt ends an answer at
    the end of its slot by itself, and a wrong guess would cut answers short.

    Args:
        wanted: what a person set.
        context: tokens a slot holds, where the server is known to end answers there.
        pool: tokens that all slots share; what goes beyond it ends every request in flight.
    """
    if wanted is not None:
        return wanted
    if pool and slots > 1:
        return max(ANSWER_TOKENS, int(SHARE_OF_SLOT * pool / slots))
    return context


def _places_to_cut(turns: Sequence[Turn], start: int) -> Sequence[int]:
    """Where a later beginning may be: at each question after an answer, from left to right."""
    return [
        index
        for index in range(start + 1, len(turns))
        if turns[index].role == "user" and turns[index - 1].role == "assistant"
    ]


def _estimate(head: int, turns: Sequence[Turn], start: int, counted: Counted | None) -> int:
    """Tokens of the turns from `start` on and of what stands before them, `head` bytes."""
    if counted is None:
        return _guess(_size(head, turns[start:]), len(turns) - start + 1, TOKENS_PER_BYTE)
    counted_start = _index(turns, counted.cut_before_message)
    counted_end = _index(turns, counted.upto) + 1
    rate = _rate(head, turns, counted)
    new = turns[counted_end:]
    if start == counted_start:
        return counted.tokens + _guess(_size(0, new), len(new), rate)
    return _guess(_size(head, turns[start:]), len(turns) - start + 1, rate)


def _rate(head: int, turns: Sequence[Turn], counted: Counted | None) -> float:
    """Tokens a byte, as the server has counted them."""
    if counted is None:
        return TOKENS_PER_BYTE
    start, end = _index(turns, counted.cut_before_message), _index(turns, counted.upto) + 1
    size = _size(head, turns[start:end])
    return counted.tokens / size if size else TOKENS_PER_BYTE


def _guess(size: int, messages: int, rate: float) -> int:
    return round(size * rate) + messages * TEMPLATE_TOKENS


def _size(head: int, turns: Sequence[Turn]) -> int:
    """Bytes in UTF-8: closer to tokens than characters are, in scripts other than Latin.

    A picture is as many as a text of its tokens has.
    """
    shown = sum(turn.image_tokens for turn in turns)
    called = (call.name + call.arguments for turn in turns for call in turn.calls)
    words = sum(_bytes(turn.content) for turn in turns) + sum(map(_bytes, called))
    return head + words + round(shown / TOKENS_PER_BYTE)


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
