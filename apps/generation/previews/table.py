"""Preview rows as a table: a column per field, in the order in which a row is filled in (pure)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apps.generation.previews.column_marks import ColumnMark
from apps.generation.previews.known_replies import write_replies
from apps.generation.rows.preview import Preview

MAX_CELL = 2_000  # characters


@dataclass(frozen=True, slots=True)
class Heading:
    column: ColumnMark
    field: str


@dataclass(frozen=True, slots=True)
class Cell:
    heading: Heading
    text: str = ""
    is_number: bool = False
    reason: str = ""
    """Why the row would be rejected, in the cell of the column that a check rejects."""


@dataclass(frozen=True, slots=True)
class TableRow:
    index: int
    cells: list[Cell]
    tried: Preview
    turns: list[tuple[str, str]]
    """Each prompt with its reply."""
    replies: str
    """For the next preview, see `known_replies.read_replies`."""


@dataclass(frozen=True, slots=True)
class PreviewTable:
    headings: list[Heading]
    rows: list[TableRow]

    @property
    def asked(self) -> int:
        """Requests sent for these rows."""
        return sum(row.tried.asked for row in self.rows)


def preview_table(marks: Sequence[ColumnMark], tried: Sequence[Preview]) -> PreviewTable:
    headings = [Heading(mark, name) for mark in marks for name in mark.fields]
    return PreviewTable(headings, [_row(at, headings, each) for at, each in enumerate(tried)])


def _row(index: int, headings: Sequence[Heading], tried: Preview) -> TableRow:
    generated = tried.generated
    turns: list[tuple[str, str]] = []
    cells: list[Cell] = []
    if generated is not None:
        turns = list(zip(generated.questions, generated.replies, strict=False))
        reason = "" if tried.outcome is None else tried.outcome.reason
        place = _rejected_at(headings, tried) if reason else None
        cells = [
            _cell(heading, generated.row.values, tried, reason if heading is place else "")
            for heading in headings
        ]
    return TableRow(index, cells, tried, turns, write_replies(tried.replies))


def _rejected_at(headings: Sequence[Heading], tried: Preview) -> Heading | None:
    """The first field of the column that was written last; the last field where it has none."""
    own = [heading for heading in headings if heading.column.name == tried.written]
    return next(iter(own), headings[-1] if headings else None)


def _cell(heading: Heading, values: Any, tried: Preview, reason: str) -> Cell:
    value = values.get(heading.field)
    text = cell_text(value)
    if reason and not text and tried.generated and tried.generated.replies:
        text = tried.generated.replies[-1][:MAX_CELL]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return Cell(heading, text, is_number, reason.removeprefix(f"“{heading.column.name}”: "))


def cell_text(value: Any) -> str:
    """A value as a table shows it; empty for one that is missing."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_CELL else f"{text[:MAX_CELL]}…"
