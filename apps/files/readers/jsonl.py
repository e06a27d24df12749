"""JSONL: one JSON object per line."""

import json
from pathlib import Path

from apps.files.errors import FormatError
from apps.files.layout import (
    MAX_COLUMNS,
    MAX_LINE,
    SAMPLE_CHARACTERS,
    SAMPLE_ROWS,
    Cells,
    FileKind,
    Layout,
    Records,
)
from apps.files.nested import FieldNames
from apps.files.readers.lines import BoundedLines, open_text
from apps.files.rows import RejectedRow

MAX_VALUES = 500_000  # of a line: as Python objects they take 60 bytes each, or more


def detect_layout(path: Path, *, encoding: str, mark: bool) -> Layout:
    """Raises:
    FormatError: the first lines hold no object, or too many different fields.
    """
    fields = FieldNames()
    with open_text(path, encoding) as file:
        for seen, (_, cells) in enumerate(
            _records(BoundedLines(file, max_characters=SAMPLE_CHARACTERS))
        ):
            if not isinstance(cells, RejectedRow):
                fields.add(cells)
            if seen == SAMPLE_ROWS or len(fields.names) > MAX_COLUMNS:
                break
    if len(fields.names) > MAX_COLUMNS:
        raise FormatError(f"Too many fields. The limit is {MAX_COLUMNS:,}.")
    if not fields.names:
        raise FormatError(
            'No line has an object with a text. Expected: {"text": "...", "label": "..."}.'
        )
    return Layout(
        FileKind.JSONL,
        encoding,
        tuple(fields.names),
        byte_order_mark=mark,
        paths=fields.paths,
        object_columns=fields.object_columns,
    )


def is_large(line: str) -> bool:
    """Return True if a line would take too much memory as Python objects."""
    return sum(map(line.count, "[{,")) > MAX_VALUES


def read_records(path: Path, layout: Layout, *, max_characters: int | None = None) -> Records:
    """Yield each row; stop after about `max_characters`, or read all."""
    with open_text(path, layout.encoding) as file:
        yield from _records(BoundedLines(file, max_characters=max_characters))


def _records(lines: BoundedLines) -> Records:
    for number, line in enumerate(lines.with_gaps(), start=1):
        if line is None:
            yield number, RejectedRow(number, "", f"More than {MAX_LINE:,} characters.")
        elif line.strip():
            yield number, _parse_line(number, line)


def _parse_line(number: int, line: str) -> Cells | RejectedRow:
    if is_large(line):
        return RejectedRow(number, "", f"The line has more than {MAX_VALUES:,} values.")
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", None) or "it is nested too deeply"
        return RejectedRow(number, "", f"This line is not JSON: {reason}.")
    if not isinstance(value, dict):
        return RejectedRow(number, "", "This line is not a JSON object.")
    return {" ".join(name.split()): cell for name, cell in value.items()}
