"""Splits lines into rows of cells. A quote counts if it closes; else it is a character.

Python's `csv` module reads on from an unclosed quote to the next one, over any number of lines:
rows become one cell without notice. Here every line ends in a row of its own, in a row with the
lines around it, or in a rejected row.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from apps.files.layout import MAX_CELL, Quoting
from apps.files.readers.line_cells import LineCells, fit_cells, line_body, split_line

ALIKE_SHARE = 0.8
SURE_LINES = 20  # so many lines of exactly the table's width are rows, with empty cells or not
MAX_BROKEN = 20  # cells with line breaks in one row: bounds what is looked at ahead again

_CLOSING = re.compile(r'([^"]*+(?:""[^"]*+)*+)"( *+)')


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One or more physical lines, read as one row. `cells` is None for a line that is too long."""

    cells: list[str] | None
    lines: int = 1
    suspect: bool = False
    """It holds a quote that does not close, or a cell with lines that could be rows."""


class _Lines:
    """The lines of a file, some of them read before their turn."""

    def __init__(self, lines: Iterable[str | None]) -> None:
        self._source = iter(lines)
        self._ahead: deque[str | None] = deque()
        self._peeked = 0
        self.peeked_size = 0

    def next(self) -> str | None:
        """Return the next line; "" at the end, None for one that is too long."""
        self._peeked = self.peeked_size = 0
        return self._ahead.popleft() if self._ahead else next(self._source, "")

    def peek(self) -> str | None:
        """Return the line after the last one that was peeked at, and leave it in its place."""
        if self._peeked == len(self._ahead):
            self._ahead.append(next(self._source, ""))
        line = self._ahead[self._peeked]
        self._peeked += 1
        self.peeked_size += len(line or "")
        return line

    def peeked(self) -> list[str]:
        return [line for line in islice(self._ahead, self._peeked) if line]

    def skip_peeked(self) -> None:
        for _ in range(self._peeked):
            self._ahead.popleft()


def split_rows(
    lines: Iterable[str | None], separator: str, *, quoting: Quoting, width: int | None
) -> Iterator[CsvRow]:
    """Yield the rows of a file, in time linear in its length.

    Args:
        lines: with their line breaks; None for one that is too long to be read.
        width: number of columns of the table, if known.
    """
    source = _Lines(lines)
    while (line := source.next()) != "":
        if line is None:
            yield CsvRow(None)
        elif quoting is Quoting.NONE or '"' not in line:
            yield CsvRow(line_body(line).split(separator))
        else:
            yield _quoted_row(line, source, separator, quoting, width)


def _quoted_row(
    line: str, source: _Lines, separator: str, quoting: Quoting, width: int | None
) -> CsvRow:
    found = split_line(line, separator)
    cells = _over_lines(line, found, source, separator) if found.opened >= 0 else None
    if cells is not None:
        lines = [line, *source.peeked()]
        alone = [split_line(part, separator).cells for part in lines] if width else []
        if not (quoting is Quoting.AUTO and width and _are_rows(alone, cells, width)):
            source.skip_peeked()
            suspect = any(len(row) == width for row in alone[1:-1])
            return CsvRow(cells, len(lines), suspect=suspect)
    return CsvRow(fit_cells(found, line_body(line), separator, width), suspect=found.stray)


def _over_lines(line: str, first: LineCells, source: _Lines, separator: str) -> list[str] | None:
    """Return the cells of this and the lines peeked at; None if a quote does not close properly."""
    cells = first.cells[: first.before]
    opened = line[first.opened + 1 :]
    most = MAX_CELL - len(opened)
    for _ in range(MAX_BROKEN):
        closed = _close(opened, source, most)
        if closed is None:
            return None
        cell, following = closed
        body = line_body(following)
        if body and not body.startswith(separator):
            return None
        cells.append(cell)
        if not body:
            return cells
        rest = split_line(body[len(separator) :], separator)
        if rest.opened < 0:
            return cells + rest.cells
        cells += rest.cells[: rest.before]
        opened = following[len(separator) + rest.opened + 1 :]
    return None


def _close(opened: str, source: _Lines, most: int) -> tuple[str, str] | None:
    """Peek at lines until the quote closes; return the cell, and what follows it on its last line.

    Args:
        opened: the cell so far, after its quote.
        most: characters of all lines peeked at.
    """
    parts = [opened]
    while line := source.peek():
        if source.peeked_size > most:
            return None
        closing = _CLOSING.match(line)
        if closing:
            text = "".join([*parts, closing[1]]).replace('""', '"')
            return text + closing[2], line[closing.end() :]
        parts.append(line)
    return None


def _are_rows(alone: list[list[str]], cells: list[str], width: int) -> bool:
    """Return True if the lines of one quoted cell look like rows that a stray quote would swallow.

    Two lines may well be a text of two lines. A text whose every line has as many separators as the
    table, and no empty cell, is rare; if it does not fit the table either, the lines are rows.

    Args:
        alone: the cells of each line by itself.
        cells: the cells of all lines as one row.
    """
    if width < 2:
        return False
    alike = [row for row in alone if len(row) == width]
    if len(cells) != width:
        return 2 * len(alike) >= len(alone)
    if len(alone) < 3 or len(alike) < ALIKE_SHARE * len(alone):
        return False
    return len(alike) > SURE_LINES or all(cell.strip() for row in alike for cell in row)
