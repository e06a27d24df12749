"""Splits lines into rows of cells. A quote counts if it closes; else it is a character.

Python's `csv` module reads on from an unclosed quote to the next one, over any number of lines:
rows become one cell without notice. Here every line ends in a row of its own, in a row with the
lines around it, or in a rejected row.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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


def split_rows(
    lines: Iterable[str | None], separator: str, *, quoting: Quoting, width: int | None
) -> Iterator[CsvRow]:
    """Yield the rows of a file, in time linear in its length.

    Args:
        lines: with their line breaks; None for one that is too long to be read.
        width: number of columns of the table, if known.
    """
    source = iter(lines)
    pending: deque[str | None] = deque()
    while True:
        line = pending.popleft() if pending else next(source, "")
        if line is None:
            yield CsvRow(None)
        elif not line:
            return
        elif quoting is Quoting.NONE or '"' not in line:
            yield CsvRow(line_body(line).split(separator))
        else:
            found = split_line(line, separator)
            whole = None
            if found.opened >= 0:
                whole = _over_lines(line, found, source, pending, separator, quoting, width)
            if whole is None:
                yield CsvRow(
                    fit_cells(found, line_body(line), separator, width), suspect=found.stray
                )
                continue
            for _ in range(whole.lines - 1):
                pending.popleft()
            yield whole


def _over_lines(
    line: str,
    first: LineCells,
    source: Iterator[str | None],
    pending: "deque[str | None]",
    separator: str,
    quoting: Quoting,
    width: int | None,
) -> CsvRow | None:
    """Return the row that spans the next lines; None if its quote does not close properly."""
    cells = first.cells[: first.before]
    parts = [line[first.opened + 1 :]]
    size = len(parts[0])
    used = 0
    broken = 1
    while True:
        if used == len(pending):
            pending.append(next(source, ""))
        following = pending[used]
        if not following or size + len(following) > MAX_CELL:
            if following == "":
                pending.pop()
            return None
        used += 1
        size += len(following)
        closing = _CLOSING.match(following)
        if closing is None:
            parts.append(following)
            continue
        body = line_body(following)
        end = closing.end()
        if end != len(body) and not body.startswith(separator, end):
            return None
        cells.append("".join([*parts, closing[1]]).replace('""', '"') + closing[2])
        if end == len(body):
            break
        rest = split_line(body[end + len(separator) :], separator)
        if rest.opened < 0:
            cells += rest.cells
            break
        broken += 1
        if broken > MAX_BROKEN:
            return None
        cells += rest.cells[: rest.before]
        parts = [following[end + len(separator) + rest.opened + 1 :]]
    lines = [line, *(part for part in list(pending)[:used] if part)]
    alone = [split_line(part, separator).cells for part in lines] if width else []
    if quoting is Quoting.AUTO and width and _are_rows(alone, cells, width):
        return None
    return CsvRow(cells, len(lines), suspect=any(len(row) == width for row in alone[1:-1]))


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
