"""Reads an export in a process with limits, whatever somebody has made of it.

`python -m apps.chat.transfer.read_sandboxed` reads standard input and prints a line of JSON for
each conversation, and at last one that says that this was all, or why it cannot be read. Pure.
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

from apps.chat.transfer.normalise import Imported, Said, Words
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


def conversations(file: IO[bytes]) -> Generator[Imported, None, None]:
    """The conversations of an export, as `imports.read` finds them.

    Raises:
        BadFile: at the first thing that cannot be read, whatever was read before it.
    """
    with tempfile.TemporaryFile() as copy:
        try:
            told = sandbox.lines(__name__, limits=LIMITS, file=_real(file, copy))
            with closing(told):
                for line in told:
                    kind, value = json.loads(line)
                    if kind == "end":
                        return
                    if kind == "error":
                        raise BadFile(value)
                    yield _imported(value)
        except sandbox.Busy as error:
            raise BadFile(str(error)) from error
        except (sandbox.Exceeded, sandbox.Failed) as error:
            raise BadFile(TOO_MUCH) from error
    raise BadFile(TOO_MUCH)


def _real(file: IO[bytes], copy: IO[bytes]) -> IO[bytes]:
    """A file that a process can be given, at its beginning: small uploads lie in memory."""
    file.seek(0)
    try:
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        return file
    except (OSError, AttributeError):
        shutil.copyfileobj(file, copy)
        copy.flush()
        os.lseek(copy.fileno(), 0, os.SEEK_SET)
        return copy


def _imported(value: dict[str, Any]) -> Imported:
    for name in ("created", "updated"):
        value[name] = _time(value[name])
    messages = [
        Said(**{**said, "words": _words(said["words"]), "created": _time(said["created"])})
        for said in value.pop("messages")
    ]
    return Imported(**value, messages=messages)


def _words(value: dict[str, Any]) -> Words:
    return Words(value["content"], value["reasoning"], tuple(value["calls"]))


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def _storable(value: Any) -> Any:
    """As every database takes it: no half of a surrogate pair, no NUL."""
    if isinstance(value, str):
        return to_storable(value)
    if isinstance(value, dict):
        return {key: _storable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(inner) for inner in value]
    return value.isoformat() if isinstance(value, datetime) else value


def main() -> None:
    def say(kind: str, value: Any) -> None:
        sys.stdout.write(f"{json.dumps([kind, value])}\n")

    try:
        for conversation in read(sys.stdin.buffer):
            say("conversation", _storable(dataclasses.asdict(conversation)))
    except BadFile as error:
        say("error", to_storable(str(error)))
    except MemoryError:
        say("error", TOO_MUCH)
    else:
        say("end", None)


if __name__ == "__main__":
    main()
