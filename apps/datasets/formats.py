"""Files of labelled texts, in and out, row by row.

What a file is (separator, encoding, header) is found in `inspect`, which column is what in
`guess_mapping`; `read` then yields one item a row in bounded memory, whatever the file holds. A row
that cannot be used is yielded too, with its number, the column and the reason: nothing is dropped
silently. Rows are counted as a spreadsheet counts them: the header is row 1.
"""

import codecs
import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TextIO

MAX_COLUMNS = 1_000
MAX_CELL = 1_000_000  # characters; the csv module refuses more, which also ends an unclosed quote
MAX_LINE = 4_000_000  # characters
MAX_TEXT = 100_000  # characters; no embedding model reads as much
MAX_LABEL = 200  # characters
SAMPLE_ROWS = 200
CHUNK_BYTES = 1 << 20

SEPARATORS = (",", ";", "\t", "|")
SEPARATOR_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}

# Names people give their columns, the likeliest first.
TEXT_NAMES = (
    *("text", "sentence", "utterance", "message", "sms", "query", "question", "content", "review"),
    *("comment", "body", "description", "input", "prompt", "tweet", "document", "title"),
)
LABEL_NAMES = (
    *("label_text", "label_name", "label", "labels", "intent", "category", "class", "target"),
    *("sentiment", "topic", "tag", "type", "emotion", "output", "y"),
)
SPLIT_NAMES = ("split", "subset", "partition", "fold", "set")

SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation", "held-out", "heldout"), "test"),
    **dict.fromkeys(("validation", "valid", "val", "dev", "development"), "validation"),
}

# A cell that begins with one of these is a formula to a spreadsheet (the last four are full width).
FORMULA_START = "=+-@\t\r\n\0＝＋－＠"
_FORMULA = re.compile(rf"'*[{re.escape(FORMULA_START)}]")
_ESCAPED_FORMULA = re.compile(rf"'+[{re.escape(FORMULA_START)}]")
_UNDECODED = re.compile("[\udc80-\udcff]")
_SURROGATE = re.compile("[\ud800-\udfff]")

csv.field_size_limit(MAX_CELL)


class FormatError(Exception):
    """The file as a whole cannot be read. The message says what to do."""


class Kind(StrEnum):
    CSV = "csv"
    JSONL = "jsonl"


@dataclass(frozen=True, slots=True)
class ExampleRow:
    """One labelled text. `split` is None, or "train", "validation" or "test"."""

    text: str
    label: str
    split: str | None = None
    origin: str = ""
    """Where it came from, in a few words: "row 17"."""


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that cannot be used, and why. `column` is empty where the row as a whole is wrong."""

    row: int
    column: str
    reason: str


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

    @property
    def description(self) -> str:
        """For a person: "CSV, separated by semicolon, windows-1252"."""
        written = {"cp1252": "Windows-1252", "utf-16": "UTF-16"}.get(self.encoding, "UTF-8")
        mark = " with a byte order mark" if self.byte_order_mark else ""
        if self.kind is Kind.JSONL:
            return f"JSONL, {written}{mark}"
        head = "with a header" if self.header else "without a header"
        return f"CSV separated by {SEPARATOR_NAMES[self.separator]}, {head}, {written}{mark}"


@dataclass(frozen=True, slots=True)
class Mapping:
    """Which column is what."""

    text: str
    label: str
    split: str | None = None


# --- What the file is ---------------------------------------------------------


def inspect(path: Path, *, name: str = "", header: bool | None = None) -> Layout:
    """Finds out how a file is written.

    Args:
        name: its original name, for the hint in a .tsv.
        header: whether the first row holds names; None to guess.

    Raises:
        FormatError: no table of at least two columns can be read from it.
    """
    encoding, mark = _encoding(path)
    with _open(path, encoding) as file:
        lines = _Lines(file)
        first = next((line for line in lines if line.strip()), "")
    if not first.strip():
        if lines.skipped:
            raise FormatError(f"The file has a line of more than {MAX_LINE:,} characters.")
        raise FormatError("The file is empty. Choose one with a text and a label on each row.")
    if first.lstrip().startswith("["):
        raise FormatError(
            "This looks like a JSON array. Write one object per line instead (JSONL)."
        )
    if first.lstrip().startswith("{"):
        return Layout(Kind.JSONL, encoding, _json_columns(path, encoding), byte_order_mark=mark)
    separator = _separator(path, encoding, name)
    rows = _sample_cells(path, encoding, separator)
    widest = max(len(row) for row in rows)
    if len(rows[0]) > MAX_COLUMNS:
        raise FormatError(
            f"The first row has {len(rows[0]):,} columns; at most {MAX_COLUMNS:,} are read. "
            "Is the separator a comma, semicolon, tab or vertical bar?"
        )
    if widest < 2:
        raise FormatError(
            "Only one column was found. A text and a label are needed, separated by a comma, "
            "semicolon, tab or vertical bar."
        )
    if header is None:
        header = _looks_like_header(rows)
    columns, cleaned = _column_names(rows[0], header)
    return Layout(Kind.CSV, encoding, columns, separator, header, mark, cleaned)


def sample(path: Path, layout: Layout, *, limit: int = SAMPLE_ROWS) -> list[list[str]]:
    """The cells of the first data rows, one list a row in the order of `layout.columns`."""
    found: list[list[str]] = []
    for _, cells in _records(path, layout):
        if isinstance(cells, RejectedRow):
            continue
        found.append([_shown(cells.get(column, "")) for column in layout.columns])
        if len(found) == limit:
            break
    return found


def guess_mapping(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Mapping:
    """Which column is what, by name where one is known, else by what the cells look like.

    The text column has the longest cells, the label column those that repeat most.
    """
    names = {column.casefold().replace(" ", "_"): column for column in reversed(columns)}
    text = next((names[name] for name in TEXT_NAMES if name in names), None)
    label = next((names[name] for name in LABEL_NAMES if name in names), None)
    split = next((names[name] for name in SPLIT_NAMES if name in names), None)
    if split is None or not _are_splits(_column(columns, rows, split), share=0.8):
        split = next((c for c in columns if _are_splits(_column(columns, rows, c))), None)
    free = [column for column in columns if column not in {text, label, split}] or list(columns)
    if text is None:
        text = max(free, key=lambda column: _mean_length(_column(columns, rows, column)))
        free = [column for column in free if column != text] or free
    if label is None:
        label = min(free, key=lambda column: _distinct_share(_column(columns, rows, column)))
    return Mapping(text, label, split)


# --- Rows ---------------------------------------------------------------------


def read(path: Path, layout: Layout, mapping: Mapping) -> Iterator[ExampleRow | RejectedRow]:
    """Every row of a file in order. Memory is bounded by the longest row allowed."""
    for number, cells in _records(path, layout):
        if isinstance(cells, RejectedRow):
            yield cells
            continue
        found = _mapped(number, cells, layout, mapping)
        yield found if isinstance(found, RejectedRow) else checked(found, number, mapping)


def checked(row: ExampleRow, number: int, names: Mapping | None = None) -> ExampleRow | RejectedRow:
    """The row with its label's stray spaces removed, or why it cannot be used. Texts stay as is."""
    names = names or Mapping("text", "label", "split")
    label = " ".join(row.label.split())
    for column, value in ((names.text, row.text), (names.label, row.label)):
        if "\0" in value:
            return RejectedRow(number, column, "It contains a NUL character.")
        if undecoded := _UNDECODED.search(value):
            byte = ord(undecoded[0]) - 0xDC00
            return RejectedRow(
                number, column, f"It contains the byte 0x{byte:02X}, which is not UTF-8."
            )
        if _SURROGATE.search(value):
            return RejectedRow(number, column, "It contains half of a surrogate pair.")
    if not row.text.strip():
        return RejectedRow(number, names.text, "The text is empty.")
    if len(row.text) > MAX_TEXT:
        return RejectedRow(
            number,
            names.text,
            f"The text has {len(row.text):,} characters; at most {MAX_TEXT:,} are taken.",
        )
    if not label:
        return RejectedRow(number, names.label, "The label is empty.")
    if len(label) > MAX_LABEL:
        return RejectedRow(
            number,
            names.label,
            f"The label has {len(label):,} characters; at most {MAX_LABEL} are taken.",
        )
    split = (row.split or "").strip().casefold()
    if split and split not in SPLITS:
        return RejectedRow(
            number,
            names.split or "split",
            f"“{split[:40]}” is no split. Use train, validation or test.",
        )
    return ExampleRow(row.text, label, SPLITS.get(split), row.origin)


def duplicate_key(text: str) -> str:
    """Texts that differ only in case and outer spaces are the same text to a reader."""
    return text.casefold().strip()


# --- Out ----------------------------------------------------------------------


def jsonl_line(row: ExampleRow) -> str:
    """The row exactly as it is kept."""
    fields = {"text": row.text, "label": row.label} | ({"split": row.split} if row.split else {})
    return json.dumps(fields, ensure_ascii=False) + "\n"


def csv_lines(rows: Iterable[ExampleRow], *, header: bool = False) -> str:
    """Rows for a spreadsheet: a cell that would be a formula gets an apostrophe in front.

    `read` takes that apostrophe away again, so a round trip changes nothing.
    """
    out = _Collected()
    writer = csv.writer(out, lineterminator="\r\n")
    if header:
        writer.writerow(["text", "label", "split"])
    for row in rows:
        writer.writerow(map(spreadsheet_safe, (row.text, row.label, row.split or "")))
    return "".join(out.parts)


def spreadsheet_safe(cell: str) -> str:
    """The cell, with an apostrophe in front where a spreadsheet would run it as a formula."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


class _Collected:
    def __init__(self) -> None:
        self.parts: list[str] = []

    def write(self, text: str) -> int:
        self.parts.append(text)
        return len(text)


# --- Encoding -----------------------------------------------------------------


def _encoding(path: Path) -> tuple[str, bool]:
    """The encoding of a file and whether it begins with a byte order mark.

    A file that is mostly UTF-8 is read as such and its undecodable rows are rejected one by one;
    one whose bytes outside ASCII are mostly not UTF-8 comes from an old Windows program.
    """
    with path.open("rb") as file:
        start = file.read(CHUNK_BYTES)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16", True
    for magic, what in (
        (b"PK\x03\x04", "an Excel or ZIP file"),
        (b"\xd0\xcf\x11\xe0", "an old Excel file"),
        (b"\x1f\x8b", "a gzip file"),
        (b"PAR1", "a Parquet file"),
        (b"%PDF", "a PDF"),
    ):
        if start.startswith(magic):
            raise FormatError(f"This is {what}. Save it as CSV, TSV or JSONL and choose that.")
    # Text has hardly a control character; a stray NUL costs its row only.
    controls = sum(start[:65536].count(byte) for byte in (0, 1, 2, 3, 4, 5, 6, 14, 15, 16))
    if controls > len(start[:65536]) // 100 + 2:
        raise FormatError("This is not a text file. Choose a CSV, TSV or JSONL file.")
    good, bad = _outside_ascii(path)
    encoding = "utf-8-sig" if bad <= good or not _is_cp1252(path) else "cp1252"
    return encoding, start.startswith(codecs.BOM_UTF8)


def _outside_ascii(path: Path) -> tuple[int, int]:
    """How many characters outside ASCII are UTF-8, and how many bytes are not."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    good = bad = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            text = decoder.decode(chunk)
            if not text.isascii():
                wrong = len(_UNDECODED.findall(text))
                bad += wrong
                good += len(text) - len(text.encode("ascii", "ignore")) - wrong
    return good, bad


def _is_cp1252(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("cp1252")()
    with path.open("rb") as file:
        try:
            while chunk := file.read(CHUNK_BYTES):
                decoder.decode(chunk)
        except UnicodeDecodeError:
            return False
    return True


def _open(path: Path, encoding: str) -> TextIO:
    # newline="": the csv module wants to see line breaks inside quotes as they are.
    return path.open(encoding=encoding, errors="surrogateescape", newline="")


class _Lines:
    """The lines of a file, without those that are too long to be held in memory.

    `skipped` says where such lines were: after how many lines that were given out.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.given = 0
        self.skipped: list[int] = []

    def __iter__(self) -> Iterator[str]:
        while line := self._readline():
            if len(line) < MAX_LINE:
                self.given += 1
                yield line
                continue
            while line and not line.endswith(("\n", "\r")):
                line = self._readline()
            self.skipped.append(self.given)

    def _readline(self) -> str:
        try:
            return self._file.readline(MAX_LINE)
        except UnicodeError as error:
            raise FormatError(f"The file is cut off or damaged: {error}.") from error


# --- Records ------------------------------------------------------------------


def _records(path: Path, layout: Layout) -> Iterator[tuple[int, dict[str, Any] | RejectedRow]]:
    """Each data row's number and its cells by column name."""
    with _open(path, layout.encoding) as file:
        if layout.kind is Kind.JSONL:
            yield from _json_records(_Lines(file))
        else:
            yield from _csv_records(_Lines(file), layout)


def _csv_records(
    lines: _Lines, layout: Layout
) -> Iterator[tuple[int, dict[str, Any] | RejectedRow]]:
    reader = csv.reader(iter(lines), delimiter=layout.separator)
    number = 0
    reported = 0
    waiting_for_header = layout.header
    while True:
        started = reader.line_num
        problem = ""
        cells: list[str] | None = []
        try:
            cells = next(reader, None)
        except csv.Error as error:
            problem = (
                f"A cell has more than {MAX_CELL:,} characters. Is a closing quote missing?"
                if "field larger" in str(error)
                else f"It cannot be read: {error}."
            )
        for after in lines.skipped[reported:]:
            if after > started and after < reader.line_num:
                problem = "A line inside it is too long."
            else:
                number += 1
                yield number, RejectedRow(number, "", f"More than {MAX_LINE:,} characters.")
        reported = len(lines.skipped)
        if cells is None:
            return
        number += 1
        if problem:
            yield number, RejectedRow(number, "", problem)
        elif cells and waiting_for_header:
            waiting_for_header = False
        elif cells:  # a blank line is no row
            yield number, _named(number, cells, layout)


def _named(number: int, cells: list[str], layout: Layout) -> dict[str, Any] | RejectedRow:
    extra = cells[len(layout.columns) :]
    if any(cell.strip() for cell in extra):
        return RejectedRow(
            number,
            "",
            f"It has {len(cells):,} cells, the table has {len(layout.columns)} columns. "
            "Are quotes missing around a text with the separator in it?",
        )
    return {
        column: cell[1:] if _ESCAPED_FORMULA.match(cell) else cell
        for column, cell in zip(layout.columns, cells, strict=False)
    }


def _json_records(lines: _Lines) -> Iterator[tuple[int, dict[str, Any] | RejectedRow]]:
    number = 0
    reported = 0
    for line in lines:
        for _ in lines.skipped[reported:]:
            number += 1
            yield number, RejectedRow(number, "", f"More than {MAX_LINE:,} characters.")
        reported = len(lines.skipped)
        number += 1
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", None) or "it is nested too deeply"
            yield number, RejectedRow(number, "", f"This line is not JSON: {reason}.")
            continue
        if isinstance(value, dict):
            yield number, {" ".join(name.split()): cell for name, cell in value.items()}
        else:
            yield number, RejectedRow(number, "", "This line is not a JSON object.")
    for _ in lines.skipped[reported:]:
        number += 1
        yield number, RejectedRow(number, "", f"More than {MAX_LINE:,} characters.")


def _mapped(
    number: int, cells: dict[str, Any], layout: Layout, mapping: Mapping
) -> ExampleRow | RejectedRow:
    values = []
    for column in (mapping.text, mapping.label):
        if column not in cells:
            reason = (
                "This field is missing."
                if layout.kind is Kind.JSONL
                else f"The row has only {len(cells)} of {len(layout.columns)} columns."
            )
            return RejectedRow(number, column, reason)
        value = cells[column]
        if value is None:
            value = ""
        if isinstance(value, list | dict):
            return RejectedRow(number, column, "It is a list or an object, not a text.")
        values.append(str(value))
    split = cells.get(mapping.split) if mapping.split else None
    text, label = values
    return ExampleRow(text, label, None if split is None else str(split), f"row {number}")


# --- Guesses ------------------------------------------------------------------


def _separator(path: Path, encoding: str, name: str) -> str:
    """The separator under which most rows have the same number of columns, and more than one."""

    def score(separator: str) -> tuple[float, int]:
        widths = Counter(
            len(row) for row in _sample_cells(path, encoding, separator, limit=50) if row
        )
        width, rows = widths.most_common(1)[0] if widths else (1, 0)
        return (rows / max(widths.total(), 1) if width > 1 else 0.0, width)

    order = ("\t", *SEPARATORS) if name.lower().endswith((".tsv", ".tab")) else SEPARATORS
    return max(order, key=lambda separator: score(separator))


def _sample_cells(
    path: Path, encoding: str, separator: str, *, limit: int = SAMPLE_ROWS
) -> list[list[str]]:
    rows: list[list[str]] = []
    with _open(path, encoding) as file:
        reader = csv.reader(iter(_Lines(file)), delimiter=separator)
        while len(rows) < limit:
            try:
                row = next(reader, None)
            except csv.Error:
                continue
            if row is None:
                break
            if row:
                rows.append(row)
    return rows or [[]]


def _looks_like_header(rows: list[list[str]]) -> bool:
    first, rest = rows[0], rows[1:]
    known = {*TEXT_NAMES, *LABEL_NAMES, *SPLIT_NAMES, "id", "index"}
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


def _column_names(first: list[str], header: bool) -> tuple[tuple[str, ...], int]:
    if not header:
        return tuple(f"column {number}" for number in range(1, len(first) + 1)), 0
    names: list[str] = []
    cleaned = 0
    for number, cell in enumerate(first, start=1):
        tidy = " ".join(cell.split())
        cleaned += tidy != cell
        name = tidy or f"column {number}"
        copies = sum(1 for other in names if other == name or other.startswith(f"{name} ("))
        names.append(f"{name} ({copies + 1})" if copies else name)
    return tuple(names), cleaned


def _json_columns(path: Path, encoding: str) -> tuple[str, ...]:
    names: dict[str, None] = {}
    with _open(path, encoding) as file:
        for seen, (_, cells) in enumerate(_json_records(_Lines(file))):
            if not isinstance(cells, RejectedRow):
                names |= dict.fromkeys(cells)
            if seen == SAMPLE_ROWS or len(names) > MAX_COLUMNS:
                break
    if len(names) > MAX_COLUMNS:
        raise FormatError(f"The objects have more than {MAX_COLUMNS:,} different fields.")
    if len(names) < 2:
        raise FormatError(
            'A text and a label are needed in each object: {"text": "...", "label": "..."}.'
        )
    return tuple(names)


def _column(columns: Sequence[str], rows: Sequence[Sequence[str]], name: str | None) -> list[str]:
    if name is None:
        return []
    place = list(columns).index(name)
    return [row[place] for row in rows if place < len(row)]


def _are_splits(cells: list[str], *, share: float = 1.0) -> bool:
    """At least that share are names of splits; a misspelt one is then reported."""
    filled = [cell.strip().casefold() for cell in cells if cell.strip()]
    return bool(filled) and sum(cell in SPLITS for cell in filled) >= share * len(filled)


def _mean_length(cells: list[str]) -> float:
    return sum(map(len, cells)) / max(len(cells), 1)


def _distinct_share(cells: list[str]) -> float:
    filled = [cell.strip() for cell in cells if cell.strip()]
    return len(set(filled)) / len(filled) if filled else 2.0


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
