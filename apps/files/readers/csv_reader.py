"""CSV, TSV and plain text: cells between separators, or one text per line."""

import re
from pathlib import Path

from apps.files.layout import MAX_CELL, MAX_LINE, FileKind, Layout, Records
from apps.files.line_counts import LineCounts
from apps.files.readers.lines import BoundedLines, open_text
from apps.files.readers.quoting import split_rows
from apps.files.rows import RejectedRow
from apps.files.writers.csv_writer import FORMULA_START

_ESCAPED_FORMULA = re.compile(rf"'+[{re.escape(FORMULA_START)}]")


def read_records(
    path: Path,
    layout: Layout,
    *,
    max_characters: int | None = None,
    counts: LineCounts | None = None,
) -> Records:
    """Yield each data row's number, and its cells by column name or a rejection.

    Args:
        max_characters: stop after about so many; None reads all.
        counts: filled with what the lines became.
    """
    counts = LineCounts() if counts is None else counts
    with open_text(path, layout.encoding) as file:
        lines = BoundedLines(file, max_characters=max_characters)
        if layout.kind is FileKind.TEXT:
            yield from _plain_records(lines, layout, counts)
        else:
            yield from _csv_records(lines, layout, counts)


def _csv_records(lines: BoundedLines, layout: Layout, counts: LineCounts) -> Records:
    number = 0
    waiting_for_header = layout.header
    for row in split_rows(
        lines.with_gaps(), layout.separator, quoting=layout.quoting, width=len(layout.columns)
    ):
        number += 1
        counts.lines += row.lines
        cells = row.cells
        if cells == [""]:  # a blank line is not a row
            continue
        if waiting_for_header and cells is not None:
            waiting_for_header = False
            continue
        counts.add(number, row.lines, row.suspect)
        if cells is None:
            yield number, RejectedRow(number, "", f"More than {MAX_LINE:,} characters.")
        else:
            yield number, _named(number, cells, row.lines, layout)


def _named(
    number: int, cells: list[str], lines: int, layout: Layout
) -> dict[str, str] | RejectedRow:
    if sum(map(len, cells)) > MAX_CELL and max(map(len, cells)) > MAX_CELL:
        return RejectedRow(
            number,
            "",
            f"A cell has more than {MAX_CELL:,} characters. A closing quote may be missing.",
        )
    extra = cells[len(layout.columns) :]
    if any(cell.strip() for cell in extra):
        of = f", over {lines:,} lines" if lines > 1 else ""
        return RejectedRow(
            number,
            "",
            f"The row has {len(cells):,} cells{of} but the table has {len(layout.columns)} "
            "columns. A text with a separator in it may need quotes.",
        )
    if layout.escaped:
        cells = [cell[1:] if _ESCAPED_FORMULA.match(cell) else cell for cell in cells]
    return dict(zip(layout.columns, cells, strict=False))


def _plain_records(lines: BoundedLines, layout: Layout, counts: LineCounts) -> Records:
    column = layout.columns[0]
    waiting_for_header = layout.header
    for number, line in enumerate(lines.with_gaps(), start=1):
        counts.lines = number
        text = None if line is None else line.rstrip("\r\n")
        if text is not None and not text.strip():  # a blank line is not a row
            continue
        if waiting_for_header and text is not None:
            waiting_for_header = False
            continue
        counts.add(number, 1, False)
        if text is None:
            yield number, RejectedRow(number, column, f"More than {MAX_LINE:,} characters.")
        else:
            yield number, {column: text}
