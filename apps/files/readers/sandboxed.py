"""Reads Excel, Parquet and JSON in a process with limits: a small file can unpack to anything.

That process runs `sandboxed_reader`, which prints the layout and the rows as lines of JSON.
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
from apps.files.errors import FormatError
from apps.files.layout import SAMPLE_ROWS, Cells, FileKind, Layout, ReadOptions
from apps.files.readers import sandboxed_reader
from apps.files.rows import RejectedRow

MEMORY_BYTES = 1 << 30
DETECT_SECONDS = 20  # of CPU; a person waits
READ_SECONDS = 30
SECONDS_PER_MEGABYTE = 10  # of the file: what Excel's XML takes on a slow machine
DAY = 86_400.0
LINE_BYTES = 64 << 20  # one row
OUTPUT_PER_BYTE = 2_000  # Parquet and ZIP pack text a thousandfold at most
HEAD_CHARACTERS = 2_000_000  # of the first rows, which are kept for the preview

Record = tuple[int, Cells | RejectedRow]


def detect_layout(
    path: Path, kind: FileKind, *, options: ReadOptions, encoding: str = "", mark: bool = False
) -> Layout:
    """Raises:
    FormatError: the file cannot be read within the limits.
    """
    options = replace(options, quoting=None, separator=None, encoding=encoding)
    return _detect_layout(path, _changed(path), kind, options, mark)


def first_records(path: Path, layout: Layout) -> tuple[Record, ...]:
    """Return the first rows, for a preview."""
    return _first_records(path, _changed(path), layout)


def read_records(path: Path, layout: Layout) -> Generator[Record, None, None]:
    """Yield as `reading.read_records`. Closing the generator ends the process."""
    size = path.stat().st_size
    seconds = READ_SECONDS + SECONDS_PER_MEGABYTE * (size >> 20)
    request = {"path": str(path), "layout": asdict(layout)}
    with closing(_run_reader(request, size, seconds)) as lines:
        for kind, number, *rest in lines:
            if kind == "bad":
                yield number, RejectedRow(number, *rest)
            elif kind == "row":
                yield number, dict(zip(layout.columns, rest[0], strict=False))
            elif kind == "fields":
                yield number, rest[0]


@lru_cache(maxsize=32)
def _detect_layout(
    path: Path, changed: int, kind: FileKind, options: ReadOptions, mark: bool
) -> Layout:
    request = {"path": str(path), "kind": kind, "options": asdict(options), "mark": mark}
    with closing(_run_reader(request, path.stat().st_size, DETECT_SECONDS)) as lines:
        _, found = next(lines)
    return sandboxed_reader.layout_from_json(found)


@lru_cache(maxsize=8)
def _first_records(path: Path, changed: int, layout: Layout) -> tuple[Record, ...]:
    kept: list[Record] = []
    characters = 0
    with closing(read_records(path, layout)) as found:
        for record in islice(found, SAMPLE_ROWS + 1):
            kept.append(record)
            characters += len(str(record[1]))
            if characters > HEAD_CHARACTERS:
                break
    return tuple(kept)


def _changed(path: Path) -> int:
    return path.stat().st_mtime_ns


def _run_reader(request: dict[str, Any], size: int, seconds: int) -> Generator[Any, None, None]:
    """Raises:
    FormatError: the reader's message about the file, or that a limit was exceeded.
    """
    limits = sandbox.Limits(
        cpu_seconds=seconds,
        memory_bytes=MEMORY_BYTES,
        seconds=DAY,  # the consumer of the rows may be slow; CPU time has its own limit
        output_bytes=(64 << 20) + OUTPUT_PER_BYTE * size,
        line_bytes=LINE_BYTES,
    )
    module = sandboxed_reader.__name__
    ended = False
    try:
        for line in sandbox.lines(module, json.dumps(request), limits=limits):
            entry = json.loads(line)
            if entry[0] == "error":
                raise FormatError(entry[1])
            if entry[0] == "end":
                ended = True
                break
            yield entry
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
