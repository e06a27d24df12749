"""CSV, TSV and plain text: cells between separators, or one text a line."""

import csv
import re
from collections import Counter
from itertools import islice
from pathlib import Path

from apps.datasets.formats.encoding import Lines, open_text
from apps.datasets.formats.export import FORMULA_START
from apps.datasets.formats.guess import KNOWN_NAMES
from apps.datasets.formats.layout import (
    MAX_CELL,
    MAX_COLUMNS,
    MAX_LINE,
    SAMPLE_CHARACTERS,
    SAMPLE_ROWS,
    SEPARATORS,
    TEXT_COLUMN,
    Kind,
    Layout,
    Records,
    Said,
    column_names,
    looks_like_header,
)
from apps.datasets.formats.rows import FormatError, RejectedRow

SCORED_ROWS = 50
PLAIN_TEXT_NAMES = (".txt", ".text", ".md", ".log")
TABLE_NAMES = (".csv", ".tsv", ".tab")
_ESCAPED_FORMULA = re.compile(rf"'+[{re.escape(FORMULA_START)}]")

csv.field_size_limit(MAX_CELL)


def inspect(path: Path, *, name: str, encoding: str, mark: bool, said: Said) -> Layout:
    """Raises:
    FormatError: the table is too wide.
    """
    separator = said.separator
    if separator is None:
        separator = find_separator(path, encoding, name)
    if not separator:
        return _inspect_plain(path, name, encoding, mark, said)
    rows = _sample_cells(path, encoding, separator)
    if len(rows[0]) > MAX_COLUMNS:
        raise FormatError(
            f"The first row has {len(rows[0]):,} columns; at most {MAX_COLUMNS:,} are read. "
            "Is the separator a comma, semicolon, tab or vertical bar?"
        )
    header = looks_like_header(rows, KNOWN_NAMES) if said.header is None else said.header
    columns, cleaned = column_names(rows[0], header)
    return Layout(Kind.CSV, encoding, columns, separator, header, mark, cleaned)


def _inspect_plain(path: Path, name: str, encoding: str, mark: bool, said: Said) -> Layout:
    """One column. In a file called .csv quotes and line breaks inside them count, in others not."""
    if said.separator is None and name.lower().endswith(TABLE_NAMES):
        rows = _sample_cells(path, encoding, ",")
        header = _is_known(rows[0][:1]) if said.header is None else said.header
        columns, cleaned = column_names(rows[0][:1], header)
        return Layout(Kind.CSV, encoding, columns, ",", header, mark, cleaned)
    first = _sample_cells(path, encoding, "\0", limit=1)[0][:1]
    header = _is_known(first) if said.header is None else said.header
    columns = column_names(first, True)[0] if header else (TEXT_COLUMN,)
    return Layout(Kind.TEXT, encoding, columns, "", header, mark)


def _is_known(cells: list[str]) -> bool:
    return any("_".join(cell.casefold().split()) in KNOWN_NAMES for cell in cells)


def records(path: Path, layout: Layout, *, most: int | None = None) -> Records:
    """`most`: how many characters are read; None for all."""
    with open_text(path, layout.encoding) as file:
        lines = Lines(file, most=most)
        if layout.kind is Kind.TEXT:
            yield from _plain_records(lines, layout)
        else:
            yield from _csv_records(lines, layout)


def _csv_records(lines: Lines, layout: Layout) -> Records:
    reader = csv.reader(iter(lines), delimiter=layout.separator)
    number = 0
    reported = 0
    waiting_for_header = layout.header
    while True:
        started = reader.line_num
        problem = ""
        cells: list[str] | None = []
        try:
            cells = next(reader, None)
        except csv.Error as error:
            problem = (
                f"A cell has more than {MAX_CELL:,} characters. Is a closing quote missing?"
                if "field larger" in str(error)
                else f"It cannot be read: {error}."
            )
        for after in lines.skipped[reported:]:
            if after > started and after < reader.line_num:
                problem = "A line inside it is too long."
            else:
                number += 1
                yield number, RejectedRow(number, "", f"More than {MAX_LINE:,} characters.")
        reported = len(lines.skipped)
        if cells is None:
            return
        number += 1
        if problem:
            yield number, RejectedRow(number, "", problem)
        elif cells and waiting_for_header:
            waiting_for_header = False
        elif cells:  # a blank line is no row
            yield number, _named(number, cells, layout)


def _named(number: int, cells: list[str], layout: Layout) -> dict[str, str] | RejectedRow:
    extra = cells[len(layout.columns) :]
    if any(cell.strip() for cell in extra):
        return RejectedRow(
            number,
            "",
            f"It has {len(cells):,} cells, the table has {len(layout.columns)} columns. "
            "Are quotes missing around a text with the separator in it?",
        )
    return {
        column: cell[1:] if cell[:1] == "'" and _ESCAPED_FORMULA.match(cell) else cell
        for column, cell in zip(layout.columns, cells, strict=False)
    }


def _plain_records(lines: Lines, layout: Layout) -> Records:
    number = reported = 0
    column = layout.columns[0]
    waiting_for_header = layout.header
    for line in lines:
        for _ in lines.skipped[reported:]:
            number += 1
            yield number, RejectedRow(number, column, f"More than {MAX_LINE:,} characters.")
        reported = len(lines.skipped)
        number += 1
        text = line.rstrip("\r\n")
        if not text.strip():  # a blank line is no row
            continue
        if waiting_for_header:
            waiting_for_header = False
            continue
        yield number, {column: text}
    for _ in lines.skipped[reported:]:
        number += 1
        yield number, RejectedRow(number, column, f"More than {MAX_LINE:,} characters.")


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
    path: Path, encoding: str, separator: str, *, limit: int = SAMPLE_ROWS
) -> list[list[str]]:
    rows: list[list[str]] = []
    with open_text(path, encoding) as file:
        lines = Lines(file, most=SAMPLE_CHARACTERS)
        if separator == "\0":  # no separator at all
            filled = (line.rstrip("\r\n") for line in lines if line.strip())
            return [[line] for line in islice(filled, limit)] or [[]]
        reader = csv.reader(iter(lines), delimiter=separator)
        while len(rows) < limit:
            try:
                row = next(reader, None)
            except csv.Error:
                continue
            if row is None:
                break
            if row:
                rows.append(row)
    return rows or [[]]
