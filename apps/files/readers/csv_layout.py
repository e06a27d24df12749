"""Detects separator, quoting, header and columns of CSV, TSV and plain text."""

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from apps.files.columns import KNOWN_COLUMN_NAMES
from apps.files.errors import FormatError
from apps.files.header import column_names, looks_like_header
from apps.files.layout import (
    MAX_COLUMNS,
    SAMPLE_CHARACTERS,
    SAMPLE_ROWS,
    SEPARATORS,
    TEXT_COLUMN,
    FileKind,
    Layout,
    Quoting,
    ReadOptions,
)
from apps.files.readers.line_cells import split_line
from apps.files.readers.lines import BoundedLines, open_text
from apps.files.readers.quoting import split_rows
from apps.files.writers.csv_writer import OLD_HEADER, OWN_HEADER

SCORED_ROWS = 50
PLAIN_TEXT_NAMES = (".txt", ".text", ".md", ".log")
TABLE_NAMES = (".csv", ".tsv", ".tab")
HEADER_CHARACTERS = 100_000  # in which the first line must end
HEADER_ROWS = 5_000  # searched for the values of the first row
QUOTING_LINES = 20_000  # read to detect whether quotes mean anything


def detect_layout(
    path: Path, *, name: str, encoding: str, mark: bool, options: ReadOptions
) -> Layout:
    """Detect separator, quoting and header of a text file.

    Raises:
        FormatError: the table is too wide.
    """
    separator = options.separator
    if separator is None:
        separator = detect_separator(path, encoding, name)
    if not separator:
        return _plain_layout(path, name, encoding, mark, options)
    quoting = options.quoting or _quoting_of(path, encoding, separator)
    rows = _sample_cells(path, encoding, separator, quoting=quoting, limit=HEADER_ROWS)
    if len(rows[0]) > MAX_COLUMNS:
        raise FormatError(
            f"The first row has {len(rows[0]):,} columns and the limit is {MAX_COLUMNS:,}. "
            "Check the separator: comma, semicolon, tab or vertical bar."
        )
    is_own = _has_own_header(path, encoding, mark)
    found = is_own or looks_like_header(rows, KNOWN_COLUMN_NAMES)
    header = found if options.header is None else options.header
    columns, cleaned = column_names(rows[0], header)
    return Layout(
        *(FileKind.CSV, encoding, columns, separator, header, mark, cleaned),
        quoting=quoting,
        escaped=header and is_own,
    )


def _has_own_header(path: Path, encoding: str, mark: bool) -> bool:
    """Return True if `CsvWriter` wrote the file."""
    with open_text(path, encoding) as file:
        lines = BoundedLines(file, max_characters=HEADER_CHARACTERS).with_gaps()
        header = (next(lines, None) or "").rstrip("\r\n")
    found = OWN_HEADER.match(header)
    if found is None:
        return header == OLD_HEADER
    # One name in quotes may be another program's that quotes all; those write no mark.
    return found["more"] is not None or (mark and found.end() == len(header))


def _quoting_of(path: Path, encoding: str, separator: str) -> Quoting:
    with open_text(path, encoding) as file:
        lines = BoundedLines(file, max_characters=SAMPLE_CHARACTERS).with_gaps()
        return detect_quoting(islice(lines, QUOTING_LINES), separator)


def _plain_layout(path: Path, name: str, encoding: str, mark: bool, options: ReadOptions) -> Layout:
    """Return a layout with one column. Quotes, and line breaks in them, count in a .csv only."""
    if options.separator is None and name.lower().endswith(TABLE_NAMES):
        rows = _sample_cells(path, encoding, ",")
        is_own = _has_own_header(path, encoding, mark)
        found = is_own or _is_known(rows[0][:1])
        header = found if options.header is None else options.header
        columns, cleaned = column_names(rows[0][:1], header)
        escaped = header and is_own
        return Layout(FileKind.CSV, encoding, columns, ",", header, mark, cleaned, escaped=escaped)
    first = _sample_cells(path, encoding, "\0", limit=1)[0][:1]
    header = _is_known(first) if options.header is None else options.header
    columns = column_names(first, True)[0] if header else (TEXT_COLUMN,)
    return Layout(FileKind.TEXT, encoding, columns, "", header, mark)


def _is_known(cells: list[str]) -> bool:
    return any("_".join(cell.casefold().split()) in KNOWN_COLUMN_NAMES for cell in cells)


def detect_separator(path: Path, encoding: str, name: str) -> str:
    """Return the separator that gives most rows the same number of columns, and more than one.

    Empty if there is none: one text per line. A comma in a file called .txt is punctuation.
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
    # A table whose every row is cut short is recognised by a header with two names.
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
        lines = BoundedLines(file, max_characters=SAMPLE_CHARACTERS)
        if separator == "\0":  # no separator at all
            filled = (line.rstrip("\r\n") for line in lines if line.strip())
            return [[line] for line in islice(filled, limit)] or [[]]
        found = split_rows(lines.with_gaps(), separator, quoting=quoting, width=None)
        rows = (row.cells for row in found if row.cells is not None and row.cells != [""])
        return list(islice(rows, limit)) or [[]]


def detect_quoting(lines: Iterable[str | None], separator: str) -> Quoting:
    """Return `Quoting.NONE` if quotes mean nothing in these first lines of a file, else `AUTO`.

    They mean nothing if more of them are stray than close, no cell needs them, and the lines have
    the table's width without them.
    """
    kept = [line for line in lines if line is not None and line.strip()]
    if not any('"' in line for line in kept):
        return Quoting.AUTO
    widths = [line.rstrip("\r\n").count(separator) + 1 for line in kept]
    width, alike = Counter(widths).most_common(1)[0]
    if width < 2 or alike < 0.95 * len(widths):
        return Quoting.AUTO
    alone = [split_line(line, separator) for line in kept if '"' in line]
    if any(found.needed for found in alone):
        return Quoting.AUTO
    closing = sum(found.quoted for found in alone)
    stray = sum(found.stray for found in alone)
    at = 0
    for row in split_rows(kept, separator, quoting=Quoting.AUTO, width=width):
        if row.lines > 1 and any(found != width for found in widths[at : at + row.lines]):
            closing += 1  # a text of several lines, whose quotes are no accident
            stray -= 1
        at += row.lines
    return Quoting.NONE if stray > closing else Quoting.AUTO
