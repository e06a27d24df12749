"""Splits one line of a table into cells. A quote counts if it closes; else it is a character."""

import re
from dataclasses import dataclass, field
from functools import lru_cache

LOOSE_QUOTES = 20  # in a line with more of them nobody can tell which ones belong together

_CLOSED = re.compile(r'"([^"]*+(?:""[^"]*+)*+)"( *+)')


@dataclass(slots=True)
class LineCells:
    """A line by itself, its stray quotes read as characters."""

    cells: list[str] = field(default_factory=list)
    quoted: int = 0
    """Cells in quotes that close on their line."""
    needed: int = 0
    """Quoted cells that hold a separator or a quote."""
    stray: bool = False
    opened: int = -1
    """Offset of the cell whose quote does not close on this line; -1 if there is none."""
    before: int = 0
    """The number of cells before that one."""


def split_line(line: str, separator: str) -> LineCells:
    """Split one line by itself. Its line break is not part of a cell."""
    body = line_body(line)
    found = LineCells()
    place = 0
    while True:
        if body.startswith('"', place):
            closed = _CLOSED.match(body, place)
            end = closed.end() if closed else -1
            if closed and (end == len(body) or body.startswith(separator, end)):
                inside = closed[1]
                found.quoted += 1
                found.needed += separator in inside or '""' in inside
                found.cells.append(inside.replace('""', '"') + closed[2])
                if end == len(body):
                    return found
                place = end + len(separator)
                continue
            found.stray = True
            if closed is None:  # all that follows on this line may be one cell that goes on
                found.opened, found.before = place, len(found.cells)
                found.cells += body[place:].split(separator)
                return found
        end = body.find(separator, place)
        if end < 0:
            found.cells.append(body[place:])
            return found
        found.cells.append(body[place:end])
        place = end + len(separator)


def fit_cells(found: LineCells, body: str, separator: str, width: int | None) -> list[str]:
    """Return the cells; if too many, join those that a quote closes later on: "He "hi, you" me"."""
    if not found.stray or width is None or len(found.cells) == width:
        return found.cells
    if body.count('"') > LOOSE_QUOTES:
        return found.cells
    loose = [_unquoted(cell) for cell in _loose(separator).findall(body)]
    return loose if len(loose) == width else found.cells


def line_body(line: str) -> str:
    return line.rstrip("\r\n")


@lru_cache(maxsize=8)
def _loose(separator: str) -> re.Pattern[str]:
    """Match a cell: from a quote to one before a separator or the end, or up to either."""
    s = re.escape(separator)
    return re.compile(rf'(?:(?<={s})|^)("[^"]*(?:"(?!{s}|$)[^"]*)*"(?={s}|$)|[^{s}]*)')


def _unquoted(cell: str) -> str:
    quoted = len(cell) > 1 and cell[0] == cell[-1] == '"'
    return cell[1:-1].replace('""', '"') if quoted else cell
