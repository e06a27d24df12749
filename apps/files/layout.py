"""The layout of a file, as detected, and the options that override the detection."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from apps.files.rows import RejectedRow

MAX_COLUMNS = 1_000
MAX_CELL = 1_000_000  # characters; the csv module refuses more, which also ends an unclosed quote
MAX_LINE = 4_000_000  # characters
SAMPLE_ROWS = 200
SAMPLE_CHARACTERS = 4 * MAX_LINE  # read for a preview, while a person waits

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

Cells = Mapping[str, object]
"""A row by column name: text, or the values that JSON, Excel and Parquet have."""
Records = Iterator[tuple[int, Cells | RejectedRow]]
"""Each data row's number, and its cells by column name or a rejection."""


class Quoting(StrEnum):
    AUTO = "auto"
    """A quoted cell may hold line breaks, unless the lines in it look like rows of their own."""
    STANDARD = "standard"
    """It may hold any lines."""
    NONE = "none"
    """A quote is a character like others."""


class FileKind(StrEnum):
    CSV = "csv"
    JSONL = "jsonl"
    JSON = "json"
    """A list of objects, alone or inside an object."""
    TEXT = "text"
    """One text a line."""
    PARQUET = "parquet"
    EXCEL = "excel"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Chosen by a person; None is detected."""

    header: bool | None = None
    separator: str | None = None
    """One of `SEPARATORS`, or "" for one text a line."""
    encoding: str | None = None
    sheet: str | None = None
    quoting: Quoting | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of a file are written."""

    kind: FileKind
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
    """An Excel sheet with formulas; their saved values are read."""
    quoting: Quoting = Quoting.AUTO
    escaped: bool = False
    """A CSV written by `CsvWriter`: the apostrophe before a formula is removed."""
    estimated_rows: int = 0
    """About how many rows an Excel, Parquet or JSON file has; 1 if a sheet does not declare it."""
    paths: tuple[str, ...] = ()
    """JSON only: plain values inside columns that are objects or lists, as "data.text"."""
    object_columns: tuple[str, ...] = ()
    """JSON only: columns that mostly hold objects, and so no text."""
    list_path: str = ""
    """JSON only: the path to the list of rows; empty if the file is the list."""

    @property
    def selectable_columns(self) -> tuple[str, ...]:
        """Columns and nested paths that can be the text, a label or the split."""
        plain = (column for column in self.columns if column not in self.object_columns)
        return (*plain, *self.paths)

    @property
    def description(self) -> str:
        """Return a phrase: "CSV separated by semicolon, with a header, Windows-1252"."""
        if self.kind is FileKind.PARQUET:
            return f"Parquet with {len(self.columns):,} columns"
        head = "with a header" if self.header else "without a header"
        if self.kind is FileKind.EXCEL:
            which = f", sheet “{self.sheet}”" if len(self.sheets) > 1 else ""
            formulas = "; formulas are read as their saved values" if self.formulas else ""
            return f"Excel{which}, {head}{formulas}"
        mark = " with a byte order mark" if self.byte_order_mark else ""
        written = f"{ENCODINGS.get(self.encoding, self.encoding)}{mark}"
        if self.kind is FileKind.JSON:
            which = f" in “{self.list_path}”" if self.list_path else ""
            return f"JSON, a list of rows{which}, {written}"
        if self.kind is FileKind.JSONL:
            return f"JSONL, {written}"
        if self.kind is FileKind.TEXT:
            return f"Plain text, one text per line, {written}"
        if len(self.columns) < 2:
            return f"CSV with one column, {head}, {written}"
        quotes = ", quotes read as characters" if self.quoting is Quoting.NONE else ""
        return f"CSV separated by {SEPARATOR_NAMES[self.separator]}{quotes}, {head}, {written}"
