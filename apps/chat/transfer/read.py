"""Reads conversations from export files of other programs. Pure.

Files are streamed: only one conversation is in memory. `read_sandboxed` does it in a process with
limits. Supported are exports of ChatGPT (the ZIP file, or its `conversations.json`), Open WebUI
("Export chats") and Workbench (JSON).
"""

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

import ijson

from apps.chat.transfer import chatgpt, open_webui, workbench
from apps.chat.transfer.imported_projects import ImportedProject
from apps.chat.transfer.json_guard import PIECE_BYTES, Guarded, TooMuch
from apps.chat.transfer.normalise import (
    ImportedConversation,
    Unreadable,
)

MAX_UNPACKED_BYTES = 1024**3
# JSON of conversations is packed to a fifth or a tenth; small files may be anything.
MAX_RATIO = 100
SMALL_BYTES = 10 * 1024**2
PEEK_BYTES = 4096


class BadFile(ValueError):
    """A file that cannot be imported. The sentence says where, and what is wrong."""


def read(file: IO[bytes]) -> Iterator[ImportedProject | ImportedConversation]:
    """Yield the projects and conversations of an export, in its order, without empty ones.

    Raises:
        BadFile: at the first thing that cannot be read, whatever was read before it.
    """
    with _opened(file) as parts:
        found = False
        for part in parts:
            for number, item in enumerate(_projects(part), start=1):
                found = True
                with _at("Project", number, item.get("name")):
                    yield ImportedProject.from_json(item)
            for number, item in enumerate(_items(part), start=1):
                found = True
                with _at("Chat", number, item.get("title")):
                    conversation = _conversation(item)
                    if conversation.messages:
                        yield conversation
        if not found:
            raise BadFile(
                "No chats found in this file. "
                "Choose an export from ChatGPT, Open WebUI or Workbench."
            )


@contextmanager
def _opened(file: IO[bytes]) -> Iterator[Iterator[IO[bytes]]]:
    """Yield the JSON files in a file: itself, or those of a ZIP."""
    if not zipfile.is_zipfile(file):
        file.seek(0)
        yield iter([file])
        return
    file.seek(0)
    try:
        with zipfile.ZipFile(file) as archive:
            yield _conversation_files(archive)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise BadFile(f"The ZIP file could not be read: {error}.") from error


def _conversation_files(archive: zipfile.ZipFile) -> Iterator[IO[bytes]]:
    names = [
        info
        for info in archive.infolist()
        if re.fullmatch(r"(.*/)?conversations(-\d+)?\.json", info.filename)
    ]
    if not names:
        raise BadFile("This ZIP file has no conversations.json.")
    unpacked = sum(info.file_size for info in names)
    if unpacked > MAX_UNPACKED_BYTES:
        raise BadFile(
            f"The chats in this ZIP file are larger than {MAX_UNPACKED_BYTES // 1024**2:,} MB. "
            "Export fewer of them."
        )
    if unpacked > max(SMALL_BYTES, MAX_RATIO * sum(info.compress_size for info in names)):
        raise BadFile(
            f"The ZIP file is packed more than {MAX_RATIO} times, as no export is. Unpack it, and "
            "choose its conversations.json."
        )
    for info in names:
        with archive.open(info) as file:
            yield file


def _projects(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the projects of an export of Workbench, which stand before its conversations."""
    start = file.read(PEEK_BYTES)
    file.seek(0)
    if re.match(rb"[^\[]*\"projects\"\s*:", start):
        yield from _values(file, "projects.item")
        file.seek(0)


def _items(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    start = file.read(PEEK_BYTES).lstrip(b"\xef\xbb\xbf \t\r\n")
    file.seek(0)
    if file.read(3) != b"\xef\xbb\xbf":
        file.seek(0)
    if start[:1] not in {b"[", b"{"}:
        raise BadFile("This file is not JSON. Choose the exported file unchanged.")
    yield from _values(file, "item" if start[:1] == b"[" else "conversations.item")


def _values(file: IO[bytes], path: str) -> Iterator[dict[str, Any]]:
    try:
        guarded = Guarded(file, MAX_UNPACKED_BYTES)
        for item in ijson.items(guarded, path, use_float=True, buf_size=PIECE_BYTES):
            if not isinstance(item, dict):
                raise BadFile("This file has a list, but not a list of chats.")
            yield cast(dict[str, Any], item)
    except TooMuch as error:
        raise BadFile(f"{error} Choose the file as it was exported.") from error
    except (ijson.JSONError, UnicodeDecodeError) as error:
        if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error):
            raise BadFile("The file is not UTF-8. Choose the exported file unchanged.") from error
        what = str(error).split("\n")[0][:120]
        raise BadFile(f"The JSON in this file is incomplete: {what}.") from error


@contextmanager
def _at(kind: str, number: int, title: object) -> Iterator[None]:
    """Name the conversation or project in errors of the block."""
    try:
        yield
    except (
        *(Unreadable, TypeError, AttributeError, KeyError, IndexError),
        *(ValueError, OverflowError, RecursionError),
    ) as error:
        named = f" (“{str(title)[:40]}”)" if title else ""
        why = str(error) if isinstance(error, Unreadable) else "it has an unexpected structure"
        raise BadFile(f"{kind} {number}{named} could not be read: {why}.") from error


def _conversation(item: dict[str, Any]) -> ImportedConversation:
    if "mapping" in item:
        return chatgpt.conversation(item)
    if isinstance(item.get("chat"), dict):
        return open_webui.conversation(item, item["chat"])
    if isinstance(item.get("history"), dict):
        return open_webui.conversation({}, item)
    if isinstance(item.get("messages"), list):
        return workbench.conversation(item)
    raise Unreadable("it is not a ChatGPT, Open WebUI or Workbench export")
