"""Conversations as other programs had them, made into questions and answers in turn. Pure."""

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

MAX_MESSAGES = 20_000  # of one conversation
RESULT_CHARACTERS = 16_000
ROLES = {"user", "assistant"}
BETWEEN = "\n\n"
"""Between what was said before and after a call."""
NO_OUTPUT = "No output."

Call = dict[str, Any]
"""What was called, with the fields of `ToolCall`. Its positions lie within its message's texts."""


class Unreadable(Exception):
    """Why one conversation cannot be read, as the end of a sentence."""


@dataclass(frozen=True)
class Words:
    """What a message says."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.content.strip() or self.reasoning.strip() or self.calls)

    def followed_by(self, more: "Words") -> "Words":
        """Both as one message: steps before an answer, or a question sent in two parts."""
        content = BETWEEN.join(filter(None, (self.content, more.content)))
        reasoning = BETWEEN.join(filter(None, (self.reasoning, more.reasoning)))
        rounds = max((call["round"] for call in self.calls), default=0)
        moved = (
            call
            | {
                "round": rounds + call["round"],
                "text_to": _moved(call["text_to"], self.content, content, more.content),
                "reasoning_to": _moved(
                    call["reasoning_to"], self.reasoning, reasoning, more.reasoning
                ),
            }
            for call in more.calls
        )
        return Words(content, reasoning, (*self.calls, *moved))

    @property
    def waits_for_result(self) -> bool:
        """Whether nothing was said since the last call."""
        return bool(self.calls) and self.calls[-1]["text_to"] == len(self.content)

    def with_result(self, text: str, *, failed: bool) -> "Words":
        """What the last call was answered; a tool may say several things."""
        newest = self.calls[-1]
        before = newest["result"].removesuffix(NO_OUTPUT)
        told = BETWEEN.join(filter(None, (before, text.strip()))) or NO_OUTPUT
        newest = answered(newest, told, failed=failed or newest["state"] == "failed")
        return replace(self, calls=(*self.calls[:-1], newest))


def _moved(position: int, before: str, joined: str, own: str) -> int:
    return position + len(joined) - len(own) if position else len(before)


@dataclass
class Said:
    """A message. `parent` is the key of another one of the same conversation.

    The role is user, assistant, or tool: what the last call was answered. Others are left out.
    """

    key: str
    parent: str | None
    role: str
    words: Words
    model: str = ""
    created: datetime | None = None
    failed: bool = False


@dataclass
class Imported:
    """A conversation as another program had it. Parents come before their children."""

    source: str
    title: str
    messages: list[Said]
    active: str | None = None
    created: datetime | None = None
    updated: datetime | None = None
    pinned: bool = False
    archived: bool = False
    tags: list[str] = field(default_factory=list)
    system: str = ""


def call(name: str, arguments: object, *, call_id: str = "") -> Call:
    """A call that nothing was answered yet, at the end of what was said before it.

    Chat templates want a JSON object as arguments, and model servers a plain name: what another
    program had differently becomes that.
    """
    if isinstance(arguments, str):
        try:
            decoded = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            decoded = {"input": arguments}
    else:
        decoded, arguments = arguments, None
    if not isinstance(decoded, dict):
        decoded, arguments = {"input": decoded}, None
    elif "input" in decoded and len(decoded) == 1:
        arguments = None
    return {
        "round": 1,
        "call_id": call_id[:200],
        "name": re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:200] or "tool",
        "arguments": arguments or json.dumps(decoded, ensure_ascii=False),
        "text_to": 0,
        "reasoning_to": 0,
        "state": "stopped",
        "result": "",
    }


def answered(made: Call, result: str, *, failed: bool = False) -> Call:
    """A call with what it was answered, of which models read the beginning."""
    if len(result) > RESULT_CHARACTERS:
        result = f"{result[:RESULT_CHARACTERS]}\n[Cut here: it has {len(result):,} characters.]"
    return made | {"state": "failed" if failed else "done", "result": result}


def part_text(part: object) -> str:
    """One of the parts in which a message may lie."""
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        if isinstance(part.get("text"), str):
            return str(part["text"])
        if "image" in str(part.get("content_type")):
            return "[image]"
    return ""


def tidied(said: list[Said], active: object) -> tuple[list[Said], str | None]:
    """Questions and answers in turn, from the roots on; and which of them was the last shown.

    What is neither (system, hidden steps) is left out and its children move up; what a tool said
    goes to the call before it. Two of one role in a row are one message.

    Raises:
        Unreadable: it is no tree, or too large.
    """
    if len(said) > MAX_MESSAGES:
        raise Unreadable(f"it has {len(said):,} messages and the limit is {MAX_MESSAGES:,}")
    nodes = {one.key: one for one in said}
    children: dict[str | None, list[Said]] = defaultdict(list)
    for one in said:
        if one.parent is not None and one.parent not in nodes:
            raise Unreadable(f"the message before message {one.key[:40]} is missing")
        children[one.parent].append(one)
    found: list[Said] = []
    waiting: list[tuple[Said, Said | None, Words]]
    waiting = [(one, None, Words()) for one in reversed(children[None])]
    nearest: dict[str, str | None] = {}
    while waiting:
        one, above, before = waiting.pop()
        kept = _kept(one, above, before, found)
        nearest[one.key] = kept.key if kept else None
        said_so_far = kept.words if kept else Words()
        waiting.extend((child, kept, said_so_far) for child in reversed(children[one.key]))
    if len(nearest) != len(said):
        raise Unreadable("its messages form a loop")
    return found, nearest.get(str(active))


def _kept(one: Said, above: Said | None, before: Words, found: list[Said]) -> Said | None:
    """Adds a message below the nearest one that was kept; returns which is the nearest now.

    `before` is what the nearest one said where this branch begins: if it has gone on since with
    another branch, this one is put beside it.
    """
    if one.role == "tool" and before.waits_for_result:
        together = before.with_result(one.words.content, failed=one.failed)
    elif one.role not in ROLES or not one.words:
        return above
    elif above is not None and above.role == one.role:
        together = before.followed_by(one.words)
    else:
        return _added(one, above, found)
    assert above is not None
    if above.words != before:
        above = Said(one.key, above.parent, above.role, before, above.model, one.created)
        found.append(above)
    above.words = together
    above.model = above.model or one.model
    return above


def _added(one: Said, above: Said | None, found: list[Said]) -> Said:
    if above is None and one.role == "assistant":
        above = Said(f"{one.key}-question", None, "user", Words("…"), created=one.created)
        found.append(above)
    one.parent = above.key if above else None
    found.append(one)
    return one


def time(value: object) -> datetime | None:
    """From seconds (or milliseconds, or nanoseconds) since 1970, or from ISO 8601."""
    try:
        if isinstance(value, str):
            parsed = datetime.fromisoformat(value)
            return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        if isinstance(value, (int, float)) and value > 0:
            seconds = float(value)
            while seconds > 1e11:
                seconds /= 1000
            return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None
