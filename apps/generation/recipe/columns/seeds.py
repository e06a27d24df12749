"""Rows of real data that a recipe builds on, from whatever they were pasted as (pure)."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts import templates

MAX_ROWS = 20_000
MAX_FIELDS = 20
MAX_CELL = 20_000  # characters
PASSAGE = 1_200  # characters: about 300 tokens, some paragraphs
FORMATS = {
    "lines": "One text per line",
    "csv": "CSV with a header",
    "jsonl": "JSON lines",
    "document": "A document, split into passages",
}
FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
TABLE_RULE = re.compile(r"\|?[\s:|-]*-[\s:|-]*\|?")
SENTENCE_END = re.compile(r"[.!?]\s|[。！？]")
# How files begin that are no text, and what they are.
NO_TEXT = {
    "%PDF-": "a PDF file",
    "PK\x03\x04": "a Word, Excel, EPUB or zip file",
    "{\\rtf": "an RTF file",
    "\ufffd\ufffd\x11\ufffd": "an old Word or Excel file",
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
        raise RecipeError.of("Choose a source for the seed rows: a dataset, rows or text.")
    if "rows" in data:
        rows = _objects(data["rows"])
    elif isinstance(data.get("text"), str):
        _check_text(data["text"].lstrip("\ufeff \r\n\t"))
        rows = _FORMATS.get(data.get("format", "lines"), _unknown)(data["text"])
    else:
        raise RecipeError.of("Choose a source for the seed rows: a dataset, rows or text.")
    if not rows:
        raise RecipeError.of("No seed rows found.")
    if len(rows) > MAX_ROWS:
        raise RecipeError.of(f"{len(rows):,} seed rows; the limit is {MAX_ROWS:,}.")
    return Table(rows)


def field_names(table: Table) -> tuple[str, ...]:
    """The names of the fields, in order.

    Raises:
        RecipeError: a name cannot stand in a template.
    """
    names = tuple(dict.fromkeys(name for row in table.rows for name in row))
    if len(names) > MAX_FIELDS:
        raise RecipeError.of(f"Seed rows have {len(names)} fields; the limit is {MAX_FIELDS}.")
    for name in names:
        templates.check_name(name)
    return names


def _objects(values: Any) -> list[Row]:
    if not isinstance(values, list):
        raise RecipeError.of("Seed rows are a list of objects.")
    rows: list[Row] = []
    for number, value in enumerate(values, start=1):
        if isinstance(value, str):
            value = {"text": value}
        if not isinstance(value, Mapping) or not value:
            raise RecipeError.of(f"Seed row {number} is not an object.")
        row = {_name(str(name)): templates.written(cell) for name, cell in value.items()}
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
        raise RecipeError.of(f"The CSV could not be read: {error}.") from error


def _jsonl(text: str) -> list[Row]:
    values = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                values.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise RecipeError.of(f"Line {number} is not valid JSON: {error}.") from error
    return _objects(values)


def _document(text: str) -> list[Row]:
    return [{"text": passage} for passage in passages(text)]


_FORMATS: dict[str, Callable[[str], list[Row]]] = {
    "lines": _lines,
    "csv": _csv,
    "jsonl": _jsonl,
    "document": _document,
}


def _check_text(text: str) -> None:
    """That it is text: a file's bytes would be taken as lines."""
    kind = next((kind for mark, kind in NO_TEXT.items() if text.startswith(mark)), "")
    if kind:
        raise RecipeError.of(
            f"This is {kind}, not text. Copy the text out of it, or save it as .txt or .md."
        )
    if "\x00" in text:
        raise RecipeError.of("This is a binary file, not text. Save it as .txt, .csv or .jsonl.")


def passages(text: str, longest: int = PASSAGE) -> list[str]:
    """A document in pieces of at most `longest` characters, its lines as they are.

    Cut at blank lines, else at line ends, sentences or spaces. A block of code stays fenced and a
    table keeps its head where they have to be cut.
    """
    merged: list[str] = []
    for block in _blocks(text):
        for piece in _cut(block, longest):
            if merged and len(merged[-1]) + len(piece) + 2 <= longest:
                merged[-1] = f"{merged[-1]}\n\n{piece}"
            else:
                merged.append(piece)
    return merged


def _blocks(text: str) -> Iterator[list[str]]:
    """Lines without a blank one between them; a fenced block of code is one, blank lines or not."""
    block: list[str] = []
    fence = ""
    for line in text.splitlines():
        line = line.rstrip()
        opened = FENCE.match(line)
        if fence:
            block.append(line)
            if opened and line.strip() == opened[1] and opened[1].startswith(fence):
                yield block
                block, fence = [], ""
            continue
        if block and (opened or not line):
            yield block
            block = []
        if opened:
            fence = opened[1]
        if line:
            block.append(line)
    if block:
        yield block


def _cut(block: list[str], longest: int) -> list[str]:
    """A block in pieces that fit."""
    whole = "\n".join(block)
    if len(whole) <= longest:
        return [whole]
    head, lines, tail = _frame(block)
    room = longest - sum(len(line) + 1 for line in [*head, *tail])
    if room < longest // 2:  # a frame as large as that is none
        head, lines, tail, room = [], block, [], longest
    pieces: list[list[str]] = [[]]
    filled = 0
    for line in lines:
        for part in _parts(line, room):
            if filled + len(part) + 1 > room + 1 and pieces[-1]:
                pieces.append([])
                filled = 0
            pieces[-1].append(part)
            filled += len(part) + 1
    return ["\n".join([*head, *piece, *tail]) for piece in pieces if piece]


def _frame(block: list[str]) -> tuple[list[str], list[str], list[str]]:
    """What each piece of a block begins and ends with: its fence, or the head of its table."""
    if opened := FENCE.match(block[0]):
        is_closed = len(block) > 1 and block[-1].strip().startswith(opened[1])
        return [block[0]], block[1 : -1 if is_closed else None], [opened[1]]
    if len(block) > 2 and TABLE_RULE.fullmatch(block[1].strip()) and "|" in block[0]:
        return block[:2], block[2:], []
    return [], block, []


def _parts(line: str, longest: int) -> Iterator[str]:
    """A line that is too long, cut at sentences, else at spaces, else anywhere."""
    start = 0
    while len(line) - start > longest:
        window = line[start : start + longest]
        ends = [found.end() for found in SENTENCE_END.finditer(window)]
        at = ends[-1] if ends else (window.rfind(" ") + 1 or longest)
        yield window[:at].rstrip()
        start += at
        while line[start : start + 1] == " ":
            start += 1
    if start < len(line):
        yield line[start:]
