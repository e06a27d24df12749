"""Rows of real data that a recipe builds on, from whatever they were pasted as (pure)."""

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.generation import prompts
from apps.generation.problems import RecipeError

MAX_ROWS = 20_000
MAX_FIELDS = 20
MAX_CELL = 20_000  # characters
PASSAGE = 1_200  # characters: about 300 tokens, some paragraphs
FORMATS = {
    "lines": "One text a line",
    "csv": "CSV with a header",
    "jsonl": "JSON lines",
    "document": "A document, cut into passages",
}

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
        """What each row says: its text, or all its fields."""
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


def read(data: Any) -> Table:
    """Seed rows in the API's words: `rows` (objects), or `text` with its `format`.

    Raises:
        RecipeError: saying what is wrong, and in which line.
    """
    if not isinstance(data, Mapping):
        raise RecipeError.of("Seed rows come from a dataset, from rows or from a text.")
    if "rows" in data:
        rows = _objects(data["rows"])
    elif isinstance(data.get("text"), str):
        rows = _FORMATS.get(data.get("format", "lines"), _unknown)(data["text"])
    else:
        raise RecipeError.of("Seed rows come from a dataset, from rows or from a text.")
    if not rows:
        raise RecipeError.of("There is no seed row in it.")
    if len(rows) > MAX_ROWS:
        raise RecipeError.of(f"{len(rows):,} seed rows; at most {MAX_ROWS:,}.")
    return Table(rows)


def field_names(table: Table) -> tuple[str, ...]:
    """The names of the fields, in order.

    Raises:
        RecipeError: a name cannot stand in a template.
    """
    names = tuple(dict.fromkeys(name for row in table.rows for name in row))
    if len(names) > MAX_FIELDS:
        raise RecipeError.of(f"Seed rows with {len(names)} fields; at most {MAX_FIELDS}.")
    for name in names:
        prompts.check_name(name)
    return names


def _objects(values: Any) -> list[Row]:
    if not isinstance(values, list):
        raise RecipeError.of("Seed rows are a list of objects.")
    rows: list[Row] = []
    for number, value in enumerate(values, start=1):
        if isinstance(value, str):
            value = {"text": value}
        if not isinstance(value, Mapping) or not value:
            raise RecipeError.of(f"Seed row {number} is no object with fields.")
        row = {_name(str(name)): prompts.written(cell) for name, cell in value.items()}
        if any(len(cell) > MAX_CELL for cell in row.values()):
            raise RecipeError.of(f"Seed row {number} has a text longer than {MAX_CELL:,}.")
        rows.append(row)
    return rows


def _name(name: str) -> str:
    """A column's name as it can stand in a template: “Review text” becomes Review_text."""
    name = re.sub(r"\W+", "_", name.strip(), flags=re.ASCII).strip("_")
    return f"_{name}" if name[:1].isdigit() else name


def _unknown(text: str) -> list[Row]:
    raise RecipeError.of(f"A text of seed rows has a format, one of {', '.join(FORMATS)}.")


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
        raise RecipeError.of(f"The CSV cannot be read: {error}.") from error


def _jsonl(text: str) -> list[Row]:
    values = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                values.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise RecipeError.of(f"Line {number} is no JSON: {error}.") from error
    return _objects(values)


def _document(text: str) -> list[Row]:
    return [{"text": passage} for passage in passages(text)]


_FORMATS: dict[str, Callable[[str], list[Row]]] = {
    "lines": _lines,
    "csv": _csv,
    "jsonl": _jsonl,
    "document": _document,
}


def passages(text: str, longest: int = PASSAGE) -> list[str]:
    """A document in pieces of at most `longest` characters, cut at paragraphs or sentences."""
    pieces: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        paragraph = " ".join(paragraph.split())
        while len(paragraph) > longest:
            ends = [found.end() for found in re.finditer(r"[.!?。]\s", paragraph[:longest])]
            at = ends[-1] if ends else (paragraph.rfind(" ", 0, longest) + 1 or longest)
            pieces.append(paragraph[:at].strip())
            paragraph = paragraph[at:]
        if paragraph:
            pieces.append(paragraph)
    merged: list[str] = []
    for piece in pieces:
        if merged and len(merged[-1]) + len(piece) + 2 <= longest:
            merged[-1] = f"{merged[-1]}\n\n{piece}"
        else:
            merged.append(piece)
    return merged
