"""Reads an export in a process with limits, because files may be hostile.

`python -m apps.chat.transfer.read_sandboxed` reads standard input and prints a line of JSON for
each conversation, then one that reports the end or the error. Pure.
"""

import dataclasses
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import closing
from datetime import datetime
from typing import IO, Any

from apps.chat.transfer.imported_projects import ImportedProject
from apps.chat.transfer.normalise import (
    ImportedCall,
    ImportedConversation,
    ImportedMessage,
    MessageContent,
)
from apps.chat.transfer.read import MAX_UNPACKED_BYTES, BadFile, read
from apps.core import sandbox
from apps.core.text.storable import to_storable

DAY = 24 * 60 * 60.0
LIMITS = sandbox.Limits(
    cpu_seconds=180,
    memory_bytes=1024**3,
    seconds=DAY,  # what writes the conversations may be slow; the CPU has its limit
    # Escaped, and texts that are joined from steps: more than was in the file.
    output_bytes=4 * MAX_UNPACKED_BYTES,
    line_bytes=64 * 1024**2,  # one conversation
)
TOO_MUCH = (
    "The file takes too much time or memory to read, or one conversation in it is larger than "
    f"{LIMITS.line_bytes // 1024**2} MB. Export fewer conversations at once."
)


Item = ImportedProject | ImportedConversation


def read_items(file: IO[bytes]) -> Generator[Item, None, None]:
    """Yield the projects and conversations of an export, as `read.read` finds them.

    Raises:
        BadFile: at the first thing that cannot be read, whatever was read before it.
    """
    with tempfile.TemporaryFile() as copy:
        try:
            lines = sandbox.lines(__name__, limits=LIMITS, file=_seekable_file(file, copy))
            with closing(lines):
                for line in lines:
                    kind, value = json.loads(line)
                    if kind == "end":
                        return
                    if kind == "error":
                        raise BadFile(value)
                    project = kind == "project"
                    yield ImportedProject.from_json(value) if project else _conversation(value)
        except sandbox.Busy as error:
            raise BadFile(str(error)) from error
        except (sandbox.Exceeded, sandbox.Failed) as error:
            raise BadFile(TOO_MUCH) from error
    raise BadFile(TOO_MUCH)


def _seekable_file(file: IO[bytes], copy: IO[bytes]) -> IO[bytes]:
    """Return a real file at its beginning, for another process: small uploads are in memory."""
    file.seek(0)
    try:
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        return file
    except (OSError, AttributeError):
        shutil.copyfileobj(file, copy)
        copy.flush()
        os.lseek(copy.fileno(), 0, os.SEEK_SET)
        return copy


def _conversation(value: dict[str, Any]) -> ImportedConversation:
    for name in ("created", "updated"):
        value[name] = _time(value[name])
    messages = [
        ImportedMessage(
            **message
            | {"content": _content(message["content"]), "created": _time(message["created"])}
        )
        for message in value.pop("messages")
    ]
    return ImportedConversation(**value, messages=messages)


def _content(value: dict[str, Any]) -> MessageContent:
    calls = tuple(ImportedCall(**call) for call in value["calls"])
    return MessageContent(value["content"], value["reasoning"], calls)


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def _as_storable(value: Any) -> Any:
    """Return the value with texts that every database takes, and times as text."""
    if isinstance(value, str):
        return to_storable(value)
    if isinstance(value, dict):
        return {key: _as_storable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_as_storable(inner) for inner in value]
    return value.isoformat() if isinstance(value, datetime) else value


def main() -> None:
    def write(kind: str, value: Any) -> None:
        sys.stdout.write(f"{json.dumps([kind, value])}\n")

    try:
        for item in read(sys.stdin.buffer):
            kind = "project" if isinstance(item, ImportedProject) else "conversation"
            write(kind, _as_storable(dataclasses.asdict(item)))
    except BadFile as error:
        write("error", to_storable(str(error)))
    except MemoryError:
        write("error", TOO_MUCH)
    else:
        write("end", None)


if __name__ == "__main__":
    main()
