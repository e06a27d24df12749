"""JSONL: one JSON object a line."""

import json
from pathlib import Path

from apps.files.layout import (
    MAX_COLUMNS,
    MAX_LINE,
    SAMPLE_CHARACTERS,
    SAMPLE_ROWS,
    Kind,
    Layout,
    Records,
)
from apps.files.readers.encoding import Lines, open_text
from apps.files.readers.nested import Fields
from apps.files.rows import FormatError, RejectedRow

MAX_VALUES = 500_000  # of a line: as Python objects they take 60 bytes each, or more


def inspect(path: Path, *, encoding: str, mark: bool) -> Layout:
    """Raises:
    FormatError: the first lines hold no object, or too many different fields.
    """
    fields = Fields()
    with open_text(path, encoding) as file:
        for seen, (_, cells) in enumerate(_records(Lines(file, most=SAMPLE_CHARACTERS))):
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
        Kind.JSONL,
        encoding,
        tuple(fields.names),
        byte_order_mark=mark,
        paths=fields.paths,
        objects=fields.objects,
    )


def is_large(line: str) -> bool:
    """Whether a line would take too much memory as Python objects."""
    return sum(map(line.count, "[{,")) > MAX_VALUES


def records(path: Path, layout: Layout, *, most: int | None = None) -> Records:
    """`most`: how many characters are read; None for all."""
    with open_text(path, layout.encoding) as file:
        yield from _records(Lines(file, most=most))


def _records(lines: Lines) -> Records:
    number = 0
    reported = 0
    for line in lines:
        for _ in lines.skipped[reported:]:
            number += 1
            yield number, RejectedRow(number, "", f"More than {MAX_LINE:,} characters.")
        reported = len(lines.skipped)
        number += 1
        if not line.strip():
            continue
        if is_large(line):
            yield number, RejectedRow(number, "", f"It has more than {MAX_VALUES:,} values.")
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", None) or "it is nested too deeply"
            yield number, RejectedRow(number, "", f"This line is not JSON: {reason}.")
            continue
        if isinstance(value, dict):
            yield number, {" ".join(name.split()): cell for name, cell in value.items()}
        else:
            yield number, RejectedRow(number, "", "This line is not a JSON object.")
    for _ in lines.skipped[reported:]:
        number += 1
        yield number, RejectedRow(number, "", f"More than {MAX_LINE:,} characters.")
