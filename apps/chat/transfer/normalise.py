"""Conversations of other programs, normalised to questions and answers in turn. Pure."""

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

MAX_MESSAGES = 20_000  # of one conversation
RESULT_CHARACTERS = 16_000
ROLES = {"user", "assistant"}
BETWEEN = "\n\n"
"""Separates the text before and after a call."""
NO_OUTPUT = "No output."


class Unreadable(Exception):
    """The reason why one conversation cannot be read, as the end of a sentence."""


@dataclass(frozen=True)
class ImportedCall:
    """A tool call. Its field names are those of `ToolCall`.

    `text_to` and `reasoning_to` are positions in the texts of its message.
    """

    name: str
    arguments: str
    call_id: str = ""
    round: int = 1
    text_to: int = 0
    reasoning_to: int = 0
    state: str = "stopped"
    result: str = ""

    def with_result(self, result: str, *, failed: bool = False) -> "ImportedCall":
        """Return the call with a result, truncated to what models read."""
        if len(result) > RESULT_CHARACTERS:
            note = f"\n[Cut here: it has {len(result):,} characters.]"
            result = result[:RESULT_CHARACTERS] + note
        return replace(self, state="failed" if failed else "done", result=result)


@dataclass(frozen=True)
class MessageContent:
    """Text, reasoning and calls of a message."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[ImportedCall, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.content.strip() or self.reasoning.strip() or self.calls)

    def followed_by(self, more: "MessageContent") -> "MessageContent":
        """Return both as one message: steps of an answer, or a question sent in two parts."""
        content = BETWEEN.join(filter(None, (self.content, more.content)))
        reasoning = BETWEEN.join(filter(None, (self.reasoning, more.reasoning)))
        rounds = max((call.round for call in self.calls), default=0)
        moved = (
            replace(
                call,
                round=rounds + call.round,
                text_to=_shift(call.text_to, self.content, content, more.content),
                reasoning_to=_shift(call.reasoning_to, self.reasoning, reasoning, more.reasoning),
            )
            for call in more.calls
        )
        return MessageContent(content, reasoning, (*self.calls, *moved))

    @property
    def waits_for_result(self) -> bool:
        """True if no text follows the last call."""
        return bool(self.calls) and self.calls[-1].text_to == len(self.content)

    def with_result(self, text: str, *, failed: bool) -> "MessageContent":
        """Return it with a result of the last call; a tool may return several."""
        newest = self.calls[-1]
        before = newest.result.removesuffix(NO_OUTPUT)
        result = BETWEEN.join(filter(None, (before, text.strip()))) or NO_OUTPUT
        newest = newest.with_result(result, failed=failed or newest.state == "failed")
        return replace(self, calls=(*self.calls[:-1], newest))


def _shift(position: int, before: str, joined: str, own: str) -> int:
    return position + len(joined) - len(own) if position else len(before)


@dataclass
class ImportedMessage:
    """A message. `parent` is the key of another one of the same conversation.

    The role is user, assistant, or tool for the result of the last call. Others are left out.
    """

    key: str
    parent: str | None
    role: str
    content: MessageContent
    model: str = ""
    created: datetime | None = None
    failed: bool = False


@dataclass
class ImportedConversation:
    """A conversation of another program. Parents come before their children."""

    source: str
    title: str
    messages: list[ImportedMessage]
    active: str | None = None
    created: datetime | None = None
    updated: datetime | None = None
    pinned: bool = False
    archived: bool = False
    tags: list[str] = field(default_factory=list)
    system: str = ""
    project: str = ""
    """Its name."""


def make_call(name: str, arguments: object, *, call_id: str = "") -> ImportedCall:
    """Return a call without a result, at the start of its message.

    Chat templates need a JSON object as arguments, and model servers a plain name. Anything else is
    converted.
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
    return ImportedCall(
        name=re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:200] or "tool",
        arguments=arguments or json.dumps(decoded, ensure_ascii=False),
        call_id=call_id[:200],
    )


def part_text(part: object) -> str:
    """Return the text of one part of a message."""
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        if isinstance(part.get("text"), str):
            return str(part["text"])
        if "image" in str(part.get("content_type")):
            return "[image]"
    return ""


def normalise_tree(
    messages: list[ImportedMessage], active: object
) -> tuple[list[ImportedMessage], str | None]:
    """Return questions and answers in turn, from the roots on, and the key of the active one.

    Other messages (system, hidden steps) are left out and their children move up. The result of a
    tool goes to the call before it. Two messages of one role in a row are joined.

    Raises:
        Unreadable: they form no tree, or there are too many.
    """
    if len(messages) > MAX_MESSAGES:
        raise Unreadable(f"it has {len(messages):,} messages and the limit is {MAX_MESSAGES:,}")
    nodes = {message.key: message for message in messages}
    children: dict[str | None, list[ImportedMessage]] = defaultdict(list)
    for message in messages:
        if message.parent is not None and message.parent not in nodes:
            raise Unreadable(f"the message before message {message.key[:40]} is missing")
        children[message.parent].append(message)
    found: list[ImportedMessage] = []
    waiting: list[tuple[ImportedMessage, ImportedMessage | None, MessageContent]]
    waiting = [(root, None, MessageContent()) for root in reversed(children[None])]
    nearest: dict[str, str | None] = {}
    while waiting:
        message, above, before = waiting.pop()
        kept = _add(message, above, before, found)
        nearest[message.key] = kept.key if kept else None
        content = kept.content if kept else MessageContent()
        waiting.extend((child, kept, content) for child in reversed(children[message.key]))
    if len(nearest) != len(messages):
        raise Unreadable("its messages form a loop")
    return found, nearest.get(str(active))


def _add(
    message: ImportedMessage,
    above: ImportedMessage | None,
    before: MessageContent,
    found: list[ImportedMessage],
) -> ImportedMessage | None:
    """Add a message below the nearest one that was kept; return the nearest one afterwards.

    Args:
        before: content of `above` where this branch starts. If another branch has extended it
            since, this branch gets a copy of its own.
    """
    if message.role == "tool" and before.waits_for_result:
        joined = before.with_result(message.content.content, failed=message.failed)
    elif message.role not in ROLES or not message.content:
        return above
    elif above is not None and above.role == message.role:
        joined = before.followed_by(message.content)
    else:
        return _add_new(message, above, found)
    assert above is not None
    if above.content != before:
        above = ImportedMessage(
            message.key, above.parent, above.role, before, above.model, message.created
        )
        found.append(above)
    above.content = joined
    above.model = above.model or message.model
    return above


def _add_new(
    message: ImportedMessage, above: ImportedMessage | None, found: list[ImportedMessage]
) -> ImportedMessage:
    if above is None and message.role == "assistant":  # an answer needs a question
        key, content = f"{message.key}-question", MessageContent("…")
        above = ImportedMessage(key, None, "user", content, created=message.created)
        found.append(above)
    message.parent = above.key if above else None
    found.append(message)
    return message


def parse_time(value: object) -> datetime | None:
    """Return a time from seconds, milli- or nanoseconds since 1970, or from ISO 8601."""
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
