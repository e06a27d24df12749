"""Conversations of other programs, read from the files they export. Pure.

A file is read as a stream: what is in memory is one conversation. Known are ChatGPT's export (the
ZIP file, or the `conversations.json` in it), Open WebUI's ("Export chats"), and our own JSON.
"""

import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import unescape
from typing import IO, Any, cast

import ijson  # type: ignore[import-untyped]

MAX_UNPACKED_BYTES = 4 * 1024**3
MAX_MESSAGES = 20_000  # of one conversation
PEEK_BYTES = 4096
ROLES = {"user", "assistant"}


class BadFile(ValueError):
    """The file cannot be imported. A sentence that says where, and what is wrong."""


@dataclass
class Said:
    """A message. `parent` is the key of another one of the same conversation."""

    key: str
    parent: str | None
    role: str
    content: str
    reasoning: str = ""
    model: str = ""
    created: datetime | None = None


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


def read(file: IO[bytes]) -> Iterator[Imported]:
    """The conversations of an export, in its order. Empty ones are left out.

    Raises:
        BadFile: at the first thing that cannot be read, whatever was read before it.
    """
    with _opened(file) as parts:
        found = False
        for part in parts:
            for number, item in enumerate(_items(part), start=1):
                found = True
                with _at(number, item):
                    conversation = _conversation(item)
                    if conversation.messages:
                        yield conversation
        if not found:
            raise BadFile(
                "There are no conversations in this file. Choose the export of ChatGPT, of Open "
                "WebUI or of this workbench."
            )


@contextmanager
def _opened(file: IO[bytes]) -> Iterator[Iterator[IO[bytes]]]:
    """The JSON files in the file: itself, or those of a ZIP."""
    if not zipfile.is_zipfile(file):
        file.seek(0)
        yield iter([file])
        return
    file.seek(0)
    try:
        with zipfile.ZipFile(file) as archive:
            yield _conversation_files(archive)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise BadFile(f"The ZIP file cannot be read: {error}.") from error


def _conversation_files(archive: zipfile.ZipFile) -> Iterator[IO[bytes]]:
    names = [
        info
        for info in archive.infolist()
        if re.fullmatch(r"(.*/)?conversations(-\d+)?\.json", info.filename)
    ]
    if not names:
        raise BadFile("There is no conversations.json in this ZIP file.")
    if sum(info.file_size for info in names) > MAX_UNPACKED_BYTES:
        raise BadFile("The conversations in this ZIP file are larger than 4 GB.")
    for info in names:
        with archive.open(info) as file:
            yield file


def _items(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    start = file.read(PEEK_BYTES).lstrip(b"\xef\xbb\xbf \t\r\n")
    file.seek(0)
    if file.read(3) != b"\xef\xbb\xbf":
        file.seek(0)
    if start[:1] not in {b"[", b"{"}:
        raise BadFile("This is not JSON. Choose the file that the other program exported.")
    path = "item" if start[:1] == b"[" else "conversations.item"
    try:
        for item in ijson.items(file, path, use_float=True):
            if not isinstance(item, dict):
                raise BadFile("This file is a list of something else than conversations.")
            yield cast(dict[str, Any], item)
    except (ijson.JSONError, UnicodeDecodeError) as error:
        what = str(error).split("\n")[0][:120]
        raise BadFile(f"The file is not complete JSON: {what}.") from error


@contextmanager
def _at(number: int, item: dict[str, Any]) -> Iterator[None]:
    """Says which conversation it was that could not be read."""
    try:
        yield
    except (_Unreadable, TypeError, AttributeError, KeyError, IndexError) as error:
        title = str(item.get("title") or "")[:40]
        named = f" (“{title}”)" if title else ""
        why = str(error) if isinstance(error, _Unreadable) else "it is not built as expected"
        raise BadFile(f"Conversation {number}{named} cannot be read: {why}.") from error


class _Unreadable(Exception):
    """Why one conversation cannot be read, as the end of a sentence."""


def _conversation(item: dict[str, Any]) -> Imported:
    if "mapping" in item:
        return _of_chatgpt(item)
    if isinstance(item.get("chat"), dict):
        return _of_open_webui(item, item["chat"])
    if isinstance(item.get("history"), dict):
        return _of_open_webui({}, item)
    if isinstance(item.get("messages"), list):
        return _of_ours(item)
    raise _Unreadable("it is neither ChatGPT’s nor Open WebUI’s nor ours")


def _of_chatgpt(item: dict[str, Any]) -> Imported:
    nodes = item["mapping"]
    said: list[Said] = []
    for key, node in nodes.items():
        message = node.get("message") or {}
        content = message.get("content") or {}
        metadata = message.get("metadata") or {}
        role = (message.get("author") or {}).get("role") or ""
        text, thoughts = _chatgpt_text(content)
        if metadata.get("is_visually_hidden_from_conversation") or message.get("recipient") not in {
            None,
            "all",
        }:
            role = ""
        said.append(
            Said(
                str(key),
                node.get("parent"),
                role,
                text,
                thoughts,
                str(metadata.get("model_slug") or ""),
                _time(message.get("create_time")),
            )
        )
    key = item.get("conversation_id") or item.get("id") or ""
    messages, active = _tidied(said, item.get("current_node"))
    return Imported(
        source=f"chatgpt:{key}"[:200] if key else "",
        title=str(item.get("title") or ""),
        active=active,
        messages=messages,
        created=_time(item.get("create_time")),
        updated=_time(item.get("update_time")),
        archived=bool(item.get("is_archived")),
        pinned=bool(item.get("is_starred")),
    )


def _chatgpt_text(content: Mapping[str, Any]) -> tuple[str, str]:
    """What was said, and what was thought."""
    kind = content.get("content_type")
    if kind == "thoughts":
        thoughts = content.get("thoughts") or []
        return "", "\n\n".join(str(t.get("content") or t.get("summary") or "") for t in thoughts)
    if kind in {"text", "multimodal_text"}:
        return "\n\n".join(filter(None, map(_part, content.get("parts") or []))), ""
    if kind == "code":
        return f"```\n{content.get('text') or ''}\n```", ""
    return "", ""


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        if isinstance(part.get("text"), str):
            return str(part["text"])
        if "image" in str(part.get("content_type")):
            return "[image]"
    return ""


_REASONING = re.compile(
    r'<details\s+type="reasoning"[^>]*>\s*(?:<summary>.*?</summary>)?(.*?)</details>\s*', re.DOTALL
)
_TOOLS = re.compile(r'<details\s+type="(?:tool_calls|code_interpreter)".*?</details>\s*', re.DOTALL)


def _of_open_webui(item: dict[str, Any], chat: dict[str, Any]) -> Imported:
    history = chat.get("history") or {}
    said = []
    for key, node in (history.get("messages") or {}).items():
        content = node.get("content")
        if isinstance(content, list):
            content = "\n\n".join(filter(None, map(_part, content)))
        text, thoughts = _without_thoughts(str(content or ""))
        said.append(
            Said(
                str(key),
                node.get("parentId"),
                str(node.get("role") or ""),
                text,
                thoughts,
                str(node.get("model") or ""),
                _time(node.get("timestamp")),
            )
        )
    key = item.get("id") or chat.get("id") or ""
    meta = item.get("meta") or {}
    messages, active = _tidied(said, history.get("currentId"))
    return Imported(
        source=f"open-webui:{key}"[:200] if key else "",
        title=str(item.get("title") or chat.get("title") or ""),
        active=active,
        messages=messages,
        created=_time(item.get("created_at") or chat.get("timestamp")),
        updated=_time(item.get("updated_at")),
        archived=bool(item.get("archived")),
        pinned=bool(item.get("pinned")),
        tags=[str(tag) for tag in (meta.get("tags") or chat.get("tags") or [])],
        system=str((chat.get("params") or {}).get("system") or chat.get("system") or ""),
    )


def _without_thoughts(text: str) -> tuple[str, str]:
    """Open WebUI keeps thoughts as HTML in the answer."""
    thoughts = [
        unescape("\n".join(line.removeprefix("> ") for line in found.strip().splitlines()))
        for found in _REASONING.findall(text)
    ]
    return _TOOLS.sub("", _REASONING.sub("", text)), "\n\n".join(thoughts)


def _of_ours(item: dict[str, Any]) -> Imported:
    said = [
        Said(
            str(node["id"]),
            None if node.get("parent") is None else str(node["parent"]),
            str(node["role"]),
            str(node.get("content") or ""),
            str(node.get("reasoning") or ""),
            str(node.get("model") or ""),
            _time(node.get("created")),
        )
        for node in item["messages"]
    ]
    prompt = item.get("system_prompt") or {}
    key = item.get("id")
    messages, active = _tidied(said, item.get("active"))
    return Imported(
        source=f"workbench:{key}:{item.get('created')}"[:200] if key else "",
        title=str(item.get("title") or ""),
        active=active,
        messages=messages,
        created=_time(item.get("created")),
        updated=_time(item.get("updated")),
        pinned=bool(item.get("pinned")),
        archived=bool(item.get("archived")),
        tags=[str(tag) for tag in item.get("tags") or []],
        system=str(prompt.get("text") or ""),
    )


def _tidied(said: list[Said], active: object) -> tuple[list[Said], str | None]:
    """Questions and answers in turn, from the roots on; and which of them was the last shown.

    What is neither (system, tools, hidden steps) is left out and its children move up. Two of one
    role in a row are one message: a step before an answer, or a question sent in two parts.
    """
    if len(said) > MAX_MESSAGES:
        raise _Unreadable(f"it has {len(said):,} messages; {MAX_MESSAGES:,} are the most")
    nodes = {one.key: one for one in said}
    children: dict[str | None, list[Said]] = defaultdict(list)
    for one in said:
        if one.parent is not None and one.parent not in nodes:
            raise _Unreadable(f"the message before message {one.key[:40]} is missing")
        children[one.parent].append(one)
    found: list[Said] = []
    waiting: list[tuple[Said, Said | None]] = [(one, None) for one in reversed(children[None])]
    nearest: dict[str, str | None] = {}
    while waiting:
        one, above = waiting.pop()
        kept = _kept(one, above, found)
        nearest[one.key] = kept.key if kept else None
        below = children[one.key]
        waiting.extend((child, kept) for child in reversed(below))
    if len(nearest) != len(said):
        raise _Unreadable("its messages go round in a circle")
    return found, nearest.get(str(active))


def _kept(one: Said, above: Said | None, found: list[Said]) -> Said | None:
    """Adds a message below the nearest one that was kept; returns which is the nearest now."""
    if one.role not in ROLES or not (one.content.strip() or one.reasoning.strip()):
        return above
    if above is not None and above.role == one.role:
        above.content = "\n\n".join(filter(None, (above.content, one.content)))
        above.reasoning = "\n\n".join(filter(None, (above.reasoning, one.reasoning)))
        above.model = above.model or one.model
        return above
    if above is None and one.role == "assistant":
        above = Said(f"{one.key}-question", None, "user", "…", created=one.created)
        found.append(above)
    one.parent = above.key if above else None
    found.append(one)
    return one


def _time(value: object) -> datetime | None:
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
