"""Excel, Parquet and JSON, read in a process with limits: little may be made to unpack to anything.

`packed_reader.py` is what runs there; it prints the layout and the rows as lines of JSON.
"""

import json
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from apps.core import sandbox
from apps.files.layout import SAMPLE_ROWS, Kind, Layout, Quoting, Said
from apps.files.readers import packed_reader
from apps.files.rows import FormatError, RejectedRow

MEMORY_BYTES = 1 << 30
INSPECT_SECONDS = 20  # of CPU; a person waits
READ_SECONDS = 30
SECONDS_PER_MEGABYTE = 10  # of the file: what Excel's XML takes on a slow machine
DAY = 86_400.0
LINE_BYTES = 64 << 20  # one row
OUTPUT_PER_BYTE = 2_000  # Parquet and ZIP pack a byte's text a thousandfold at most
HEAD_CHARACTERS = 2_000_000  # of the first rows, which are kept for the preview

Record = tuple[int, dict[str, Any] | RejectedRow]


def inspect(
    path: Path, kind: Kind, *, said: Said, encoding: str = "", mark: bool = False
) -> Layout:
    """Raises:
    FormatError: it cannot be read, or not within the limits.
    """
    said = replace(said, quoting=None, separator=None, encoding=encoding)
    return _inspected(path, _changed(path), kind, said, mark)


def head(path: Path, layout: Layout) -> tuple[Record, ...]:
    """The first rows, for a preview."""
    return _head(path, _changed(path), layout)


def records(path: Path, layout: Layout) -> Generator[Record, None, None]:
    """As `files.read_records`; close it to end the process."""
    size = path.stat().st_size
    seconds = READ_SECONDS + SECONDS_PER_MEGABYTE * (size >> 20)
    asked = {"path": str(path), "layout": asdict(layout)}
    with closing(_printed(asked, size, seconds)) as printed:
        for kind, number, *rest in printed:
            if kind == "bad":
                yield number, RejectedRow(number, *rest)
            elif kind == "row":
                yield number, dict(zip(layout.columns, rest[0], strict=False))
            elif kind == "fields":
                yield number, rest[0]


@lru_cache(maxsize=32)
def _inspected(path: Path, changed: int, kind: Kind, said: Said, mark: bool) -> Layout:
    asked = {"path": str(path), "kind": kind, "said": asdict(said), "mark": mark}
    with closing(_printed(asked, path.stat().st_size, INSPECT_SECONDS)) as printed:
        _, found = next(printed)
    for name in packed_reader.TUPLES:
        found[name] = tuple(found[name])
    return Layout(**found | {"kind": kind, "quoting": Quoting(found["quoting"])})


@lru_cache(maxsize=8)
def _head(path: Path, changed: int, layout: Layout) -> tuple[Record, ...]:
    kept: list[Record] = []
    characters = 0
    with closing(records(path, layout)) as found:
        for record in islice(found, SAMPLE_ROWS + 1):
            kept.append(record)
            characters += len(str(record[1]))
            if characters > HEAD_CHARACTERS:
                break
    return tuple(kept)


def _changed(path: Path) -> int:
    return path.stat().st_mtime_ns


def _printed(asked: dict[str, Any], size: int, seconds: int) -> Generator[Any, None, None]:
    """Raises:
    FormatError: what the reader says of the file, or that it took too much.
    """
    limits = sandbox.Limits(
        cpu_seconds=seconds,
        memory_bytes=MEMORY_BYTES,
        seconds=DAY,  # what reads the rows may be slow; the CPU has its limit
        output_bytes=(64 << 20) + OUTPUT_PER_BYTE * size,
        line_bytes=LINE_BYTES,
    )
    module = packed_reader.__name__
    ended = False
    try:
        for line in sandbox.lines(module, json.dumps(asked), limits=limits):
            said = json.loads(line)
            if said[0] == "error":
                raise FormatError(said[1])
            if said[0] == "end":
                ended = True
                break
            yield said
    except (sandbox.Exceeded, sandbox.Failed) as error:
        raise FormatError(TOO_MUCH.format(megabytes=MEMORY_BYTES >> 20, seconds=seconds)) from error
    except sandbox.Busy as error:
        raise FormatError(str(error)) from error
    if not ended:
        raise FormatError(TOO_MUCH.format(megabytes=MEMORY_BYTES >> 20, seconds=seconds))


TOO_MUCH = (
    "The file takes more than {megabytes:,} MB of memory or {seconds:,} s to read. "
    "Save it as CSV or split it, and choose that."
)
