"""CSV, TSV and plain text: cells between separators, or one text a line."""

import re
from collections import Counter
from itertools import islice
from pathlib import Path

from apps.files.column_guess import KNOWN_NAMES
from apps.files.layout import (
    MAX_CELL,
    MAX_COLUMNS,
    MAX_LINE,
    SAMPLE_CHARACTERS,
    SAMPLE_ROWS,
    SEPARATORS,
    TEXT_COLUMN,
    Kind,
    Layout,
    Quoting,
    Records,
    Said,
    Tally,
    column_names,
    looks_like_header,
)
from apps.files.readers.encoding import Lines, open_text
from apps.files.readers.quotes import find_quoting, split_lines
from apps.files.rows import FormatError, RejectedRow
from apps.files.writers.csv_writer import FORMULA_START, OLD_HEADER, OWN_HEADER

SCORED_ROWS = 50
PLAIN_TEXT_NAMES = (".txt", ".text", ".md", ".log")
TABLE_NAMES = (".csv", ".tsv", ".tab")
HEADER_CHARACTERS = 100_000  # of which the first line is looked at
HEADER_ROWS = 5_000  # among which the values of the first row are looked for
QUOTING_LINES = 20_000  # of which is told whether quotes mean anything
_ESCAPED_FORMULA = re.compile(rf"'+[{re.escape(FORMULA_START)}]")


def inspect(path: Path, *, name: str, encoding: str, mark: bool, said: Said) -> Layout:
    """Raises:
    FormatError: the table is too wide.
    """
    separator = said.separator
    if separator is None:
        separator = find_separator(path, encoding, name)
    if not separator:
        return _inspect_plain(path, name, encoding, mark, said)
    quoting = said.quoting or _find_quoting(path, encoding, separator)
    rows = _sample_cells(path, encoding, separator, quoting=quoting, limit=HEADER_ROWS)
    if len(rows[0]) > MAX_COLUMNS:
        raise FormatError(
            f"The first row has {len(rows[0]):,} columns; at most {MAX_COLUMNS:,} are read. "
            "Is the separator a comma, semicolon, tab or vertical bar?"
        )
    is_ours = _is_ours(path, encoding, mark)
    found = is_ours or looks_like_header(rows, KNOWN_NAMES)
    header = found if said.header is None else said.header
    columns, cleaned = column_names(rows[0], header)
    return Layout(
        *(Kind.CSV, encoding, columns, separator, header, mark, cleaned),
        quoting=quoting,
        escaped=header and is_ours,
    )


def _is_ours(path: Path, encoding: str, mark: bool) -> bool:
    with open_text(path, encoding) as file:
        lines = Lines(file, most=HEADER_CHARACTERS).with_gaps()
        header = (next(lines, None) or "").rstrip("\r\n")
    found = OWN_HEADER.match(header)
    if found is None:
        return header == OLD_HEADER
    # One name in quotes may be another program's that quotes all; those write no mark.
    return found["more"] is not None or (mark and found.end() == len(header))


def _find_quoting(path: Path, encoding: str, separator: str) -> Quoting:
    with open_text(path, encoding) as file:
        lines = Lines(file, most=SAMPLE_CHARACTERS).with_gaps()
        return find_quoting(islice(lines, QUOTING_LINES), separator)


def _inspect_plain(path: Path, name: str, encoding: str, mark: bool, said: Said) -> Layout:
    """One column. In a file called .csv quotes and line breaks inside them count, in others not."""
    if said.separator is None and name.lower().endswith(TABLE_NAMES):
        rows = _sample_cells(path, encoding, ",")
        is_ours = _is_ours(path, encoding, mark)
        found = is_ours or _is_known(rows[0][:1])
        header = found if said.header is None else said.header
        columns, cleaned = column_names(rows[0][:1], header)
        escaped = header and is_ours
        return Layout(Kind.CSV, encoding, columns, ",", header, mark, cleaned, escaped=escaped)
    first = _sample_cells(path, encoding, "\0", limit=1)[0][:1]
    header = _is_known(first) if said.header is None else said.header
    columns = column_names(first, True)[0] if header else (TEXT_COLUMN,)
    return Layout(Kind.TEXT, encoding, columns, "", header, mark)


def _is_known(cells: list[str]) -> bool:
    return any("_".join(cell.casefold().split()) in KNOWN_NAMES for cell in cells)


def records(
    path: Path, layout: Layout, *, most: int | None = None, tally: Tally | None = None
) -> Records:
    """Args:
    most: how many characters are read; None for all.
    tally: what became of the lines is counted there.
    """
    tally = Tally() if tally is None else tally
    with open_text(path, layout.encoding) as file:
        lines = Lines(file, most=most)
        if layout.kind is Kind.TEXT:
            yield from _plain_records(lines, layout, tally)
        else:
            yield from _csv_records(lines, layout, tally)


def _csv_records(lines: Lines, layout: Layout, tally: Tally) -> Records:
    number = 0
    waiting_for_header = layout.header
    for row in split_lines(
        lines.with_gaps(), layout.separator, quoting=layout.quoting, width=len(layout.columns)
    ):
        number += 1
        tally.lines += row.lines
        cells = row.cells
        if cells == [""]:  # a blank line is no row
            continue
        if waiting_for_header and cells is not None:
            waiting_for_header = False
            continue
        tally.add(number, row.lines, row.suspect)
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
            f"It has {len(cells):,} cells{of}, the table has {len(layout.columns)} columns. "
            "Are quotes missing around a text with the separator in it?",
        )
    if layout.escaped:
        cells = [cell[1:] if _ESCAPED_FORMULA.match(cell) else cell for cell in cells]
    return dict(zip(layout.columns, cells, strict=False))


def _plain_records(lines: Lines, layout: Layout, tally: Tally) -> Records:
    column = layout.columns[0]
    waiting_for_header = layout.header
    for number, line in enumerate(lines.with_gaps(), start=1):
        tally.lines = number
        text = None if line is None else line.rstrip("\r\n")
        if text is not None and not text.strip():  # a blank line is no row
            continue
        if waiting_for_header and text is not None:
            waiting_for_header = False
            continue
        tally.add(number, 1, False)
        if text is None:
            yield number, RejectedRow(number, column, f"More than {MAX_LINE:,} characters.")
        else:
            yield number, {column: text}


def find_separator(path: Path, encoding: str, name: str) -> str:
    """The separator under which most rows have the same number of columns, and more than one.

    Empty where there is none: one text a line. A comma in a file called .txt is punctuation.
    """
    lower = name.lower()
    order: tuple[str, ...] = ("\t", *SEPARATORS) if lower.endswith((".tsv", ".tab")) else SEPARATORS
    if lower.endswith(PLAIN_TEXT_NAMES):
        order, least = ("\t", "|"), 1.0
    else:
        least = 0.0

    def score(separator: str) -> tuple[float, int]:
        rows = _sample_cells(path, encoding, separator, limit=SCORED_ROWS)
        widths = Counter(len(row) for row in rows if row)
        width, count = widths.most_common(1)[0] if widths else (1, 0)
        return (count / max(widths.total(), 1) if width > 1 else 0.0, width)

    scores = {separator: score(separator) for separator in order}
    best = max(order, key=lambda separator: scores[separator])
    if scores[best][1] > 1 and scores[best][0] >= least:
        return best
    # Only a header with two names tells of a table whose every row is cut short.
    first = _sample_cells(path, encoding, best, limit=1)[0]
    return best if len(first) > 1 and (_is_known(first) or len(first) > MAX_COLUMNS) else ""


def _sample_cells(
    path: Path,
    encoding: str,
    separator: str,
    *,
    limit: int = SAMPLE_ROWS,
    quoting: Quoting = Quoting.AUTO,
) -> list[list[str]]:
    with open_text(path, encoding) as file:
        lines = Lines(file, most=SAMPLE_CHARACTERS)
        if separator == "\0":  # no separator at all
            filled = (line.rstrip("\r\n") for line in lines if line.strip())
            return [[line] for line in islice(filled, limit)] or [[]]
        found = split_lines(lines.with_gaps(), separator, quoting=quoting, width=None)
        rows = (row.cells for row in found if row.cells is not None and row.cells != [""])
        return list(islice(rows, limit)) or [[]]
