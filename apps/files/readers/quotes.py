"""Physical lines into rows of cells. A quote counts where it closes, else it is a character.

Python's `csv` module reads on from a quote that nobody closes to the next one, over any number of
lines: rows become one cell, and nobody is told. Here every line ends in a row of its own, in a row
with the lines around it, or in a row that cannot be used.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from apps.files.layout import MAX_CELL, Quoting

ALIKE_SHARE = 0.8
SURE_LINES = 20  # so many lines of exactly the table's width are rows, with empty cells or not
MAX_BROKEN = 20  # cells with line breaks in one row: bounds what is looked at ahead again
LOOSE_QUOTES = 20  # in a line with more of them nobody can tell which ones belong together

_CLOSED = re.compile(r'"([^"]*+(?:""[^"]*+)*+)"( *+)')
_CLOSING = re.compile(r'([^"]*+(?:""[^"]*+)*+)"( *+)')


@dataclass(frozen=True, slots=True)
class Row:
    """One or more physical lines, read as one row. `cells` is None for a line that is too long."""

    cells: list[str] | None
    lines: int = 1
    suspect: bool = False
    """It holds a quote that does not close, or a cell with lines that could be rows."""


@dataclass(slots=True)
class _Cells:
    """A line by itself, its stray quotes taken as characters."""

    cells: list[str] = field(default_factory=list)
    quoted: int = 0
    """Cells in quotes that close on their line."""
    needed: int = 0
    """... of those, the ones that hold a separator or a quote."""
    stray: bool = False
    opened: int = -1
    """Where the cell begins whose quote does not close on this line; -1: there is none."""
    before: int = 0
    """How many cells come before that one."""


def split_lines(
    lines: Iterable[str | None], separator: str, *, quoting: Quoting, width: int | None
) -> Iterator[Row]:
    """The rows of a file, in time that grows with its length alone.

    Args:
        lines: with their line breaks; None for one that is too long to be read.
        width: how many columns the table has, where that is known.
    """
    source = iter(lines)
    pending: deque[str | None] = deque()
    while True:
        line = pending.popleft() if pending else next(source, "")
        if line is None:
            yield Row(None)
        elif not line:
            return
        elif quoting is Quoting.NONE or '"' not in line:
            yield Row(_body(line).split(separator))
        else:
            found = _split(_body(line), separator)
            whole = None
            if found.opened >= 0:
                whole = _over_lines(line, found, source, pending, separator, quoting, width)
            if whole is None:
                yield Row(_fitted(found, _body(line), separator, width), suspect=found.stray)
                continue
            for _ in range(whole.lines - 1):
                pending.popleft()
            yield whole


def _split(body: str, separator: str) -> _Cells:
    found = _Cells()
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


def _fitted(found: _Cells, body: str, separator: str, width: int | None) -> list[str]:
    """The cells; where too many, those that a quote closes later on: "He said "hi, you" to me"."""
    if not found.stray or width is None or len(found.cells) == width:
        return found.cells
    if body.count('"') > LOOSE_QUOTES:
        return found.cells
    loose = [_unquoted(cell) for cell in _loose(separator).findall(body)]
    return loose if len(loose) == width else found.cells


def _over_lines(
    line: str,
    first: _Cells,
    source: Iterator[str | None],
    pending: "deque[str | None]",
    separator: str,
    quoting: Quoting,
    width: int | None,
) -> Row | None:
    """The row that goes on over the next lines; None where its quote does not close in order."""
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
        body = _body(following)
        end = closing.end()
        if end != len(body) and not body.startswith(separator, end):
            return None
        cells.append("".join([*parts, closing[1]]).replace('""', '"') + closing[2])
        if end == len(body):
            break
        rest = _split(body[end + len(separator) :], separator)
        if rest.opened < 0:
            cells += rest.cells
            break
        broken += 1
        if broken > MAX_BROKEN:
            return None
        cells += rest.cells[: rest.before]
        parts = [following[end + len(separator) + rest.opened + 1 :]]
    lines = [line, *(part for part in list(pending)[:used] if part)]
    alone = [_split(_body(part), separator).cells for part in lines] if width else []
    if quoting is Quoting.AUTO and width and _are_rows(alone, cells, width):
        return None
    return Row(cells, len(lines), suspect=any(len(row) == width for row in alone[1:-1]))


def _are_rows(alone: list[list[str]], cells: list[str], width: int) -> bool:
    """Whether the lines of one quoted cell look like rows that a stray quote would swallow.

    Two lines may well be a text of two lines. A text whose every line has as many separators as the
    table, and no empty cell, is rare; one that moreover does not fit the table is none.

    Args:
        alone: the cells of each line by itself.
        cells: those of all lines as one row.
    """
    if width < 2:
        return False
    alike = [row for row in alone if len(row) == width]
    if len(cells) != width:
        return 2 * len(alike) >= len(alone)
    if len(alone) < 3 or len(alike) < ALIKE_SHARE * len(alone):
        return False
    return len(alike) > SURE_LINES or all(cell.strip() for row in alike for cell in row)


def find_quoting(lines: Iterable[str | None], separator: str) -> Quoting:
    """Whether quotes mean anything in these first lines of a file.

    They do not where more of them are stray than close, no cell needs them, and the lines have the
    table's width without them.
    """
    kept = [line for line in lines if line is not None and line.strip()]
    if not any('"' in line for line in kept):
        return Quoting.AUTO
    widths = [_body(line).count(separator) + 1 for line in kept]
    width, alike = Counter(widths).most_common(1)[0]
    if width < 2 or alike < 0.95 * len(widths):
        return Quoting.AUTO
    alone = [_split(_body(line), separator) for line in kept if '"' in line]
    if any(found.needed for found in alone):
        return Quoting.AUTO
    closing = sum(found.quoted for found in alone)
    stray = sum(found.stray for found in alone)
    at = 0
    for row in split_lines(kept, separator, quoting=Quoting.AUTO, width=width):
        if row.lines > 1 and any(found != width for found in widths[at : at + row.lines]):
            closing += 1  # a text of several lines, whose quotes are no accident
            stray -= 1
        at += row.lines
    return Quoting.NONE if stray > closing else Quoting.AUTO


def _body(line: str) -> str:
    return line.rstrip("\r\n")


@lru_cache(maxsize=8)
def _loose(separator: str) -> re.Pattern[str]:
    """A cell: from a quote to the first one before a separator or the end, or up to either."""
    s = re.escape(separator)
    return re.compile(rf'(?:(?<={s})|^)("(?:[^"]|"(?!{s}|$))*+"(?={s}|$)|[^{s}]*+)')


def _unquoted(cell: str) -> str:
    quoted = len(cell) > 1 and cell[0] == cell[-1] == '"'
    return cell[1:-1].replace('""', '"') if quoted else cell
