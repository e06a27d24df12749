"""Rows of real data that a recipe builds on, from whatever they were pasted as (pure)."""

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from apps.generation.recipe.columns.passages import passages
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts.budget import to_text
from apps.generation.recipe.prompts.names import check_name

MAX_ROWS = 20_000
MAX_FIELDS = 20
MAX_CELL = 20_000  # characters
Format = Literal["lines", "csv", "jsonl", "document"]
FORMATS: dict[Format, str] = {
    "lines": "One text per line",
    "csv": "CSV with a header",
    "jsonl": "JSON lines",
    "document": "A document, split into passages",
}
# How files begin that are no text, and what they are.
NO_TEXT = {
    "%PDF-": "a PDF file",
    "PK\x03\x04": "a Word, Excel, EPUB or zip file",
    "{\\rtf": "an RTF file",
    "\ufffd\ufffd\x11\ufffd": "an old Word or Excel file",
}

NO_SOURCE = "Choose a source for the seed rows: a dataset, rows or text."
Row = Mapping[str, str]
Choose = Callable[[str, int], int]
"""(what for, of how many) -> which one: random numbers that are the same for the same row."""


@dataclass(frozen=True, slots=True)
class Table:
    """Seed rows, all with the same fields."""

    rows: Sequence[Row]
    _by_value: dict[str, dict[str, list[int]]] = field(default_factory=dict, repr=False)

    @property
    def texts(self) -> list[str]:
        """The text of each row, or all its fields."""
        return [row.get("text") or "\n".join(row.values()) for row in self.rows]

    def matching(self, name: str, value: str) -> list[int]:
        """The places of the rows whose field `name` is `value`."""
        if name not in self._by_value:
            found: dict[str, list[int]] = {}
            for place, row in enumerate(self.rows):
                found.setdefault(row.get(name, ""), []).append(place)
            self._by_value[name] = found
        return self._by_value[name].get(value, [])

    def pick(self, places: Sequence[int] | None, count: int, choose: Choose) -> list[Row]:
        """`count` different rows by chance, of all or of those at `places`; fewer if there are."""
        total = len(self.rows) if places is None else len(places)
        chosen: list[int] = []
        for turn in range(min(count, total)):
            # Of those left: Floyd's algorithm, which needs no list of all.
            upper = total - min(count, total) + turn
            at = choose(str(turn), upper + 1)
            chosen.append(upper if at in chosen else at)
        return [self.rows[at if places is None else places[at]] for at in chosen]


def table_of(objects: Any) -> Table:
    """Seed rows given as objects, or as texts.

    Raises:
        RecipeError: with the number of the row.
    """
    return _table(_objects(objects))


def read_text(text: Any, text_format: Any = "lines") -> Table:
    """Seed rows as they were pasted.

    Raises:
        RecipeError: with the line.
    """
    if not isinstance(text, str):
        raise RecipeError.one(NO_SOURCE)
    _check_text(text.lstrip("\ufeff \r\n\t"))
    if not isinstance(text_format, str) or text_format not in _READERS:
        raise RecipeError.one(f"A text of seed rows has a format, one of {', '.join(FORMATS)}.")
    return _table(_READERS[text_format](text))


def _table(rows: Sequence[Row]) -> Table:
    if not rows:
        raise RecipeError.one("No seed rows found.")
    if len(rows) > MAX_ROWS:
        raise RecipeError.one(f"{len(rows):,} seed rows; the limit is {MAX_ROWS:,}.")
    return Table(rows)


def field_names(table: Table) -> tuple[str, ...]:
    """The names of the fields, in order.

    Raises:
        RecipeError: a name cannot stand in a template.
    """
    names = tuple(dict.fromkeys(name for row in table.rows for name in row))
    if len(names) > MAX_FIELDS:
        raise RecipeError.one(f"Seed rows have {len(names)} fields; the limit is {MAX_FIELDS}.")
    for name in names:
        check_name(name)
    return names


def _objects(values: Any) -> list[Row]:
    if not isinstance(values, list):
        raise RecipeError.one("Seed rows are a list of objects.")
    rows: list[Row] = []
    for number, value in enumerate(values, start=1):
        if isinstance(value, str):
            value = {"text": value}
        if not isinstance(value, Mapping) or not value:
            raise RecipeError.one(f"Seed row {number} is not an object.")
        row = {_name(str(name)): to_text(cell) for name, cell in value.items()}
        if any(len(cell) > MAX_CELL for cell in row.values()):
            raise RecipeError.one(f"Seed row {number} has a text longer than {MAX_CELL:,}.")
        rows.append(row)
    return rows


def _name(name: str) -> str:
    """A column's name as it can stand in a template: “Review text” becomes Review_text."""
    name = re.sub(r"\W+", "_", name.strip(), flags=re.ASCII).strip("_")
    return f"_{name}" if name[:1].isdigit() else name


def _lines(text: str) -> list[Row]:
    return _objects([{"text": line.strip()} for line in text.splitlines() if line.strip()])


def _csv(text: str) -> list[Row]:
    first = text.splitlines()[0] if text.strip() else ""
    separator = max(",;\t|", key=first.count)
    try:
        return _objects(
            [
                {name: cell or "" for name, cell in row.items() if isinstance(name, str) and name}
                for row in csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
            ]
        )
    except csv.Error as error:
        raise RecipeError.one(f"The CSV could not be read: {error}.") from error


def _jsonl(text: str) -> list[Row]:
    values = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                values.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise RecipeError.one(f"Line {number} is not valid JSON: {error}.") from error
    return _objects(values)


def _document(text: str) -> list[Row]:
    return [{"text": passage} for passage in passages(text)]


_READERS: dict[str, Callable[[str], list[Row]]] = {
    "lines": _lines,
    "csv": _csv,
    "jsonl": _jsonl,
    "document": _document,
}


def _check_text(text: str) -> None:
    """Check that the value is text: a file's bytes would be read as lines."""
    kind = next((kind for mark, kind in NO_TEXT.items() if text.startswith(mark)), "")
    if kind:
        raise RecipeError.one(
            f"This is {kind}, not text. Copy the text out of it, or save it as .txt or .md."
        )
    if "\x00" in text:
        raise RecipeError.one("This is a binary file, not text. Save it as .txt, .csv or .jsonl.")
