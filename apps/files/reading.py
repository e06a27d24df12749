"""Reads the rows of a file of any kind, in order and in bounded memory."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from apps.core.text.storable import to_storable
from apps.files.layout import SAMPLE_CHARACTERS, SAMPLE_ROWS, Cells, FileKind, Layout, Records
from apps.files.line_counts import LineCounts
from apps.files.nested import value_at
from apps.files.readers import csv_reader, jsonl, sandboxed
from apps.files.readers.encoding import CHUNK_BYTES
from apps.files.rows import (
    LABEL_SEPARATOR,
    MAX_EXTRA_CELL,
    MAX_EXTRA_COLUMNS,
    ColumnMapping,
    ExampleRow,
    RejectedRow,
    cell_text,
    check_row,
)

JSON_KINDS = (FileKind.JSONL, FileKind.JSON)
SANDBOXED_KINDS = (FileKind.EXCEL, FileKind.PARQUET, FileKind.JSON)


def read_records(
    path: Path,
    layout: Layout,
    *,
    max_characters: int | None = None,
    counts: LineCounts | None = None,
) -> Records:
    """Yield each data row's number, and its cells by column name or a rejection.

    Args:
        max_characters: stop after about this many characters of a text file; None reads all.
        counts: filled with what the lines of a CSV or plain text file became.
    """
    if layout.kind in SANDBOXED_KINDS:
        if max_characters:
            return iter(sandboxed.first_records(path, layout))
        return sandboxed.read_records(path, layout)
    if layout.kind is FileKind.JSONL:
        return jsonl.read_records(path, layout, max_characters=max_characters)
    return csv_reader.read_records(path, layout, max_characters=max_characters, counts=counts)


def read_rows(
    path: Path,
    layout: Layout,
    mapping: ColumnMapping,
    *,
    max_characters: int | None = None,
    counts: LineCounts | None = None,
) -> Iterator[tuple[int, ExampleRow | RejectedRow]]:
    """Yield every row with its number, as it is in the file: not checked, not cleaned."""
    extra = extra_columns(layout, mapping)
    for number, cells in read_records(path, layout, max_characters=max_characters, counts=counts):
        if isinstance(cells, RejectedRow):
            yield number, cells
        else:
            yield number, to_row(number, cells, layout, mapping, extra)


def read_checked_rows(
    path: Path, layout: Layout, mapping: ColumnMapping, *, max_characters: int | None = None
) -> Iterator[ExampleRow | RejectedRow]:
    """Yield every row, checked (see `check_row`). The longest row allowed bounds the memory."""
    for number, row in read_rows(path, layout, mapping, max_characters=max_characters):
        if isinstance(row, RejectedRow):
            yield row
        else:
            yield check_row(row, number, mapping, unlabelled=mapping.accepts_unlabelled)


def sample_rows(
    path: Path, layout: Layout, *, limit: int = SAMPLE_ROWS, columns: Sequence[str] | None = None
) -> list[list[str]]:
    """Return the cells of the first data rows, in the order of the columns or paths."""
    columns = layout.columns if columns is None else columns
    found: list[list[str]] = []
    records = read_records(path, layout, max_characters=SAMPLE_CHARACTERS)
    for seen, (_, cells) in enumerate(records):
        if not isinstance(cells, RejectedRow):
            found.append(display_cells(cells, columns))
        if len(found) == limit or seen == 10 * limit:
            break
    return found


def display_cells(cells: Cells, columns: Sequence[str]) -> list[str]:
    """Return the cells of a row as text, in the order of the columns or paths."""
    return [_display(value_at(cells, column)[1]) for column in columns]


def estimate_rows(path: Path, layout: Layout) -> int:
    """Return about how many rows a file has, quickly: for a progress bar."""
    if layout.kind in SANDBOXED_KINDS:
        return layout.estimated_rows
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(CHUNK_BYTES), b""))


def extra_columns(layout: Layout, mapping: ColumnMapping) -> tuple[str, ...]:
    """Return the columns that are kept with each row, besides text, label and split."""
    if not mapping.keep_extra:
        return ()
    used = {*mapping.columns, *mapping.ignored}
    return tuple(c for c in layout.columns if c not in used)[:MAX_EXTRA_COLUMNS]


def to_row(
    number: int,
    cells: Cells,
    layout: Layout,
    mapping: ColumnMapping,
    extra: tuple[str, ...] = (),
) -> ExampleRow | RejectedRow:
    """Return the row that cells make, not checked; a rejection if one is missing or no text."""
    values = []
    for column in (mapping.text, mapping.label, mapping.second_label):
        if column is None:
            values.append("")
            continue
        there, value = value_at(cells, column) if layout.paths else (column in cells, None)
        if not there:
            if column != mapping.text and mapping.keep_unlabelled:
                values.append("")
                continue
            return RejectedRow(number, column, _missing(cells, layout))
        value = value if layout.paths else cells[column]
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, list | dict):
            return RejectedRow(number, column, _nested(value))
        values.append(cell_text(value))
    text, label, second = values
    if mapping.second_label:
        label = LABEL_SEPARATOR.join(part.strip() for part in (label, second) if part.strip())
    split = cell_text(value_at(cells, mapping.split)[1]) if mapping.split else None
    meta = {column: kept for column in extra if (kept := _extra_cell(cells.get(column)))}
    return ExampleRow(text, label, split, f"row {number}", meta)


def _missing(cells: Cells, layout: Layout) -> str:
    if layout.kind in JSON_KINDS:
        return "This field is missing."
    return f"The row has only {len(cells)} of {len(layout.columns)} columns."


def _nested(value: list[Any] | dict[str, Any]) -> str:
    kind = "a list or an object" if isinstance(value, dict) else f"a list of {len(value):,}"
    return f"The value is {kind}, not a text. Choose one of the nested fields."


def _extra_cell(value: Any) -> str:
    cell = _display(value)[: MAX_EXTRA_CELL + 1]
    if len(cell) > MAX_EXTRA_CELL:
        cell = f"{cell[: MAX_EXTRA_CELL - 1]}…"
    # An extra column never costs its row: characters that no database keeps are replaced.
    return to_storable(cell)


def _display(value: Any) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return cell_text(value)
