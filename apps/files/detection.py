"""Detects how a file is written: its kind by the first bytes, then what its reader finds."""

import json
import re
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path

from apps.files.columns import guess_mapping
from apps.files.errors import FormatError
from apps.files.layout import MAX_LINE, SAMPLE_CHARACTERS, FileKind, Layout, ReadOptions
from apps.files.readers import csv_layout, jsonl, sandboxed
from apps.files.readers.encoding import detect_encoding
from apps.files.readers.lines import BoundedLines, open_text
from apps.files.reading import sample_rows
from apps.files.rows import ColumnMapping

DETECT_ALL = ReadOptions()
START_CHARACTERS = 64_000
EMPTY = "The file is empty. Choose a file with one text per row."
SANDBOXED_SUFFIXES = {".xlsx": "an Excel file", ".parquet": "a Parquet file"}
_ARRAY = re.compile(r'\[\s*(?:[{\[\]"0-9]|$)')
_OPENED = re.compile(r"^\s*\{\s*$|[\[{]\s*$")


def detect_layout(
    path: Path, *, name: str = "", header: bool | None = None, options: ReadOptions = DETECT_ALL
) -> Layout:
    """Detect how a file is written.

    Args:
        name: its original name, for the hint in a .tsv.
        header: the first row holds names; None to detect it.
        options: chosen by a person in place of detection.

    Raises:
        FormatError: no table and no text can be read from it. The message says what to do.
    """
    if header is not None:
        options = replace(options, header=header)
    with path.open("rb") as file:
        start = file.read(4)
    if start == b"PAR1":
        return sandboxed.detect_layout(path, FileKind.PARQUET, options=options)
    if start == b"PK\x03\x04":
        return sandboxed.detect_layout(path, FileKind.EXCEL, options=options)
    for suffix, kind in SANDBOXED_SUFFIXES.items():
        if name.lower().endswith(suffix) and start:
            raise FormatError(
                f"The name ends in {suffix}, but this is not {kind}. "
                "If it holds text, rename it to .csv or .txt and choose it again."
            )
    about = path.stat()
    return _detect_text_layout(path, about.st_mtime_ns, about.st_size, name, options)


def detect_mapping(path: Path, layout: Layout) -> ColumnMapping:
    """Guess the columns, or nested fields, that hold text, label and split."""
    columns = layout.selectable_columns
    return guess_mapping(columns, sample_rows(path, layout, columns=columns))


@lru_cache(maxsize=64)
def _detect_text_layout(
    path: Path, changed: int, size: int, name: str, options: ReadOptions
) -> Layout:
    """Cached, since a preview asks several times, and again for every change of an option."""
    encoding, mark = detect_encoding(path)
    if options.encoding is not None:
        encoding = options.encoding
    with open_text(path, encoding) as text:
        lines = BoundedLines(text, max_characters=SAMPLE_CHARACTERS)
        first, second = [*islice((line for line in lines if line.strip()), 2), "", ""][:2]
    start = _start(path, encoding)
    if not first.strip() and not start:
        raise FormatError(EMPTY)
    if _is_json(start, first, second):
        return sandboxed.detect_layout(
            path, FileKind.JSON, options=options, encoding=encoding, mark=mark
        )
    if not first.strip():
        raise FormatError(f"The file has a line of more than {MAX_LINE:,} characters.")
    if first.lstrip().startswith("{"):
        return jsonl.detect_layout(path, encoding=encoding, mark=mark)
    layout = csv_layout.detect_layout(
        path, name=name, encoding=encoding, mark=mark, options=options
    )
    if not layout.columns:  # nothing but an empty quoted cell
        raise FormatError(EMPTY)
    return layout


def _start(path: Path, encoding: str) -> str:
    """Return the first characters after any white space."""
    with open_text(path, encoding) as text:
        return text.read(START_CHARACTERS).lstrip()


def _is_json(start: str, first: str, second: str) -> bool:
    """Return True if a file is one JSON value, and not one object per line.

    Args:
        start: its first characters.
        first, second: its first lines that are not blank; empty if they are too long.
    """
    if start.startswith("["):  # not merely a text in brackets, such as "[removed],spam"
        return bool(_ARRAY.match(start))
    if not start.startswith("{") or second.lstrip().startswith("{"):
        return False
    if jsonl.is_large(first):
        return not second.strip()
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        goes_on = second.lstrip().startswith(('"', "[", "]", "}"))
        return goes_on or not first.strip() or bool(_OPENED.search(first))
    return not second.strip() and isinstance(value, dict) and _wraps_rows(value)


def _wraps_rows(value: dict[str, object]) -> bool:
    """Return True for {"data": [{...}, ...]}, False for an object that is a row itself."""
    lists = [inner for inner in value.values() if isinstance(inner, list)]
    return any(inner and isinstance(inner[0], dict) for inner in lists) and not any(
        isinstance(inner, str) for inner in value.values()
    )
