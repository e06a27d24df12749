"""How a file is written: what was found, and what a person said instead."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from apps.files.rows import RejectedRow

MAX_COLUMNS = 1_000
MAX_CELL = 1_000_000  # characters; the csv module refuses more, which also ends an unclosed quote
MAX_LINE = 4_000_000  # characters
SAMPLE_ROWS = 200
MAX_SUSPECTS = 20  # rows that are named
SAMPLE_CHARACTERS = 4 * MAX_LINE  # in which those rows must be found: somebody waits for them

SEPARATORS = (",", ";", "\t", "|")
SEPARATOR_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
ENCODINGS = {
    "utf-8-sig": "UTF-8",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16 little-endian",
    "utf-16-be": "UTF-16 big-endian",
    "utf-32": "UTF-32",
    "cp1252": "Windows-1252",
    "iso-8859-2": "ISO-8859-2",
    "cp1251": "Windows-1251",
    "shift_jis": "Shift JIS",
    "gb18030": "GB 18030",
}
TEXT_COLUMN = "text"

Records = Iterator[tuple[int, dict[str, Any] | RejectedRow]]
"""Each data row's number, and its cells by column name or why it cannot be read."""


class Quoting(StrEnum):
    AUTO = "auto"
    """A quoted cell may hold line breaks, unless the lines in it look like rows of their own."""
    STANDARD = "standard"
    """It may hold any lines."""
    NONE = "none"
    """A quote is a character like others."""


class Kind(StrEnum):
    CSV = "csv"
    JSONL = "jsonl"
    JSON = "json"
    """A list of objects, alone or inside an object."""
    TEXT = "text"
    """One text a line."""
    PARQUET = "parquet"
    EXCEL = "excel"


@dataclass(frozen=True, slots=True)
class Said:
    """What a person said of a file; None is what nobody said and is found out."""

    header: bool | None = None
    separator: str | None = None
    """One of `SEPARATORS`, or "" for one text a line."""
    encoding: str | None = None
    sheet: str | None = None
    quoting: Quoting | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file is written."""

    kind: Kind
    encoding: str
    columns: tuple[str, ...]
    separator: str = ","
    header: bool = True
    byte_order_mark: bool = False
    cleaned_names: int = 0
    """Column names that had stray spaces around or in them."""
    sheets: tuple[str, ...] = ()
    sheet: str = ""
    formulas: bool = False
    """An Excel sheet with formulas, of which the saved values are read."""
    quoting: Quoting = Quoting.AUTO
    escaped: bool = False
    """A CSV of our own: an apostrophe before a formula was put there, and is taken away."""
    claimed_rows: int = 0
    """About how many rows an Excel, Parquet or JSON file has; 1 where a sheet says nothing."""
    paths: tuple[str, ...] = ()
    """Of JSON: plain values inside columns that are objects or lists, as "data.text"."""
    objects: tuple[str, ...] = ()
    """Of JSON: the columns that mostly hold objects, and so no text."""
    inside: str = ""
    """Of JSON: the path to the list of rows; empty where the file is the list."""

    @property
    def choices(self) -> tuple[str, ...]:
        """What can be the text, a label or the split: columns, and what is nested in them."""
        plain = (column for column in self.columns if column not in self.objects)
        return (*plain, *self.paths)

    @property
    def description(self) -> str:
        """For a person: "CSV, separated by semicolon, with a header, Windows-1252"."""
        if self.kind is Kind.PARQUET:
            return f"Parquet with {len(self.columns):,} columns"
        head = "with a header" if self.header else "without a header"
        if self.kind is Kind.EXCEL:
            which = f", sheet “{self.sheet}”" if len(self.sheets) > 1 else ""
            formulas = "; formulas are read as their saved values" if self.formulas else ""
            return f"Excel{which}, {head}{formulas}"
        mark = " with a byte order mark" if self.byte_order_mark else ""
        written = f"{ENCODINGS.get(self.encoding, self.encoding)}{mark}"
        if self.kind is Kind.JSON:
            which = f" in “{self.inside}”" if self.inside else ""
            return f"JSON, a list of rows{which}, {written}"
        if self.kind is Kind.JSONL:
            return f"JSONL, {written}"
        if self.kind is Kind.TEXT:
            return f"Plain text, one text per line, {written}"
        if len(self.columns) < 2:
            return f"CSV with one column, {head}, {written}"
        quotes = ", quotes read as characters" if self.quoting is Quoting.NONE else ""
        return f"CSV separated by {SEPARATOR_NAMES[self.separator]}{quotes}, {head}, {written}"


@dataclass(slots=True)
class Tally:
    """What the lines of a text file became."""

    lines: int = 0
    rows: int = 0
    """Rows that were read or rejected: no header, no blank line."""
    broken: int = 0
    """Rows with line breaks in a cell."""
    longest: int = 0
    """The most lines of one of them."""
    suspects: list[int] = field(default_factory=list)
    """The numbers of the first rows with a stray quote, or with lines that could be rows."""

    def add(self, number: int, lines: int, suspect: bool) -> None:
        self.rows += 1
        if lines > 1:
            self.broken += 1
            self.longest = max(self.longest, lines)
        if suspect and len(self.suspects) < MAX_SUSPECTS:
            self.suspects.append(number)

    @property
    def description(self) -> str:
        """For a person: "120 lines, 84 rows. 12 rows hold line breaks, the longest 4 lines." """
        lines = "1 line" if self.lines == 1 else f"{self.lines:,} lines"
        rows = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        if not self.broken:
            return f"{lines}, {rows}."
        hold = "1 row holds" if self.broken == 1 else f"{self.broken:,} rows hold"
        return f"{lines}, {rows}. {hold} line breaks, the longest {self.longest:,} lines."


def column_names(first: list[str], header: bool) -> tuple[tuple[str, ...], int]:
    """A name for each cell of the first row, each different, and how many had stray spaces."""
    if not header:
        return tuple(f"column {number}" for number in range(1, len(first) + 1)), 0
    names: list[str] = []
    taken: set[str] = set()
    cleaned = 0
    for number, cell in enumerate(first, start=1):
        tidy = " ".join(cell.split())
        cleaned += tidy != cell
        name = free = tidy or f"column {number}"
        copy = 2
        while free in taken:
            free = f"{name} ({copy})"
            copy += 1
        taken.add(free)
        names.append(free)
    return tuple(names), cleaned


def looks_like_header(rows: list[list[str]], known: set[str]) -> bool:
    """Whether the first row holds names. `known` are names people give their columns."""
    first, rest = rows[0], rows[1:]
    if any("_".join(cell.casefold().split()) in known for cell in first):
        return True
    if any(not cell.strip() or len(cell) > 60 for cell in first):
        return False
    # A name does not come back as a value: a label does.
    return not any(
        cell.strip() == row[place].strip()
        for place, cell in enumerate(first)
        for row in rest
        if place < len(row)
    )
