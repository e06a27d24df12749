"""One door for all kinds of files: what it is, its first rows, all its rows."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from apps.files.column_guess import guess_mapping
from apps.files.layout import (
    MAX_LINE,
    SAMPLE_CHARACTERS,
    SAMPLE_ROWS,
    Kind,
    Layout,
    Records,
    Said,
    Tally,
)
from apps.files.readers import csv_reader, jsonl, packed
from apps.files.readers.encoding import CHUNK_BYTES, Lines, find_encoding, open_text
from apps.files.readers.nested import at_path
from apps.files.rows import (
    JOINED_BY,
    MAX_EXTRA_CELL,
    MAX_EXTRA_COLUMNS,
    ExampleRow,
    FormatError,
    Mapping,
    RejectedRow,
    checked,
    plain,
)

NOTHING_SAID = Said()
BEGINNING = 64_000  # characters
FIELDS = (Kind.JSONL, Kind.JSON)
PACKED = (Kind.EXCEL, Kind.PARQUET, Kind.JSON)
_ARRAY = re.compile(r'\[\s*(?:[{\[\]"0-9]|$)')
_OPENED = re.compile(r"^\s*\{\s*$|[\[{]\s*$")
PACKED_NAMES = {".xlsx": "an Excel file", ".parquet": "a Parquet file"}
SURVEY_LINES = 100_000  # read while a person waits


def inspect(
    path: Path, *, name: str = "", header: bool | None = None, said: Said = NOTHING_SAID
) -> Layout:
    """Finds out how a file is written.

    Args:
        name: its original name, for the hint in a .tsv.
        header: whether the first row holds names; None to guess.
        said: what a person said of it instead.

    Raises:
        FormatError: no table and no text can be read from it. The message says what to do.
    """
    if header is not None:
        said = replace(said, header=header)
    with path.open("rb") as file:
        start = file.read(4)
    if start == b"PAR1":
        return packed.inspect(path, Kind.PARQUET, said=said)
    if start == b"PK\x03\x04":
        return packed.inspect(path, Kind.EXCEL, said=said)
    for ending, what in PACKED_NAMES.items():
        if name.lower().endswith(ending) and start:
            raise FormatError(
                f"The name ends in {ending}, but this is not {what}. "
                "If it holds text, rename it to .csv or .txt and choose it again."
            )
    about = path.stat()
    return _inspected_text(path, about.st_mtime_ns, about.st_size, name, said)


@lru_cache(maxsize=64)
def _inspected_text(path: Path, changed: int, size: int, name: str, said: Said) -> Layout:
    """Remembered, since a preview asks several times, and again with every choice."""
    encoding, mark = find_encoding(path)
    if said.encoding is not None:
        encoding = said.encoding
    with open_text(path, encoding) as text:
        lines = Lines(text, most=SAMPLE_CHARACTERS)
        first, second = [*islice((line for line in lines if line.strip()), 2), "", ""][:2]
    begins = _begins(path, encoding)
    if not first.strip() and not begins:
        raise FormatError("The file is empty. Choose a file with one text per row.")
    if _is_json(begins, first, second):
        return packed.inspect(path, Kind.JSON, said=said, encoding=encoding, mark=mark)
    if not first.strip():
        raise FormatError(f"The file has a line of more than {MAX_LINE:,} characters.")
    if first.lstrip().startswith("{"):
        return jsonl.inspect(path, encoding=encoding, mark=mark)
    return csv_reader.inspect(path, name=name, encoding=encoding, mark=mark, said=said)


def read_records(
    path: Path, layout: Layout, *, most: int | None = None, tally: Tally | None = None
) -> Records:
    """Each data row's number, and its cells by column name or why it cannot be read.

    Args:
        most: of how many characters of a text file; None for all.
        tally: what became of the lines of a CSV or plain text file is counted there.
    """
    if layout.kind in PACKED:
        return iter(packed.head(path, layout)) if most else packed.records(path, layout)
    if layout.kind is Kind.JSONL:
        return jsonl.records(path, layout, most=most)
    return csv_reader.records(path, layout, most=most, tally=tally)


def sample(
    path: Path, layout: Layout, *, limit: int = SAMPLE_ROWS, columns: Sequence[str] | None = None
) -> list[list[str]]:
    """The cells of the first data rows, one list a row in the order of the columns or paths."""
    columns = layout.columns if columns is None else columns
    found: list[list[str]] = []
    for seen, (_, cells) in enumerate(read_records(path, layout, most=SAMPLE_CHARACTERS)):
        if not isinstance(cells, RejectedRow):
            found.append([_shown(at_path(cells, column)[1]) for column in columns])
        if len(found) == limit or seen == 10 * limit:
            break
    return found


def read(
    path: Path, layout: Layout, mapping: Mapping, *, most: int | None = None
) -> Iterator[ExampleRow | RejectedRow]:
    """Every row of a file in order, checked. Memory is bounded by the longest row allowed."""
    for number, row in read_rows(path, layout, mapping, most=most):
        if isinstance(row, RejectedRow):
            yield row
        else:
            yield checked(row, number, mapping, unlabelled=mapping.takes_unlabelled)


def survey(path: Path, layout: Layout) -> tuple[Tally, bool] | None:
    """What the lines of a file become, and whether that is all of its lines: a person waits, so of
    a large file only the beginning is read. None for files that have no lines of a table."""
    if layout.kind not in {Kind.CSV, Kind.TEXT}:
        return None
    tally = Tally()
    for _ in read_records(path, layout, most=SAMPLE_CHARACTERS, tally=tally):
        if tally.lines >= SURVEY_LINES:
            return tally, False
    return tally, path.stat().st_size <= SAMPLE_CHARACTERS


def read_rows(
    path: Path,
    layout: Layout,
    mapping: Mapping,
    *,
    most: int | None = None,
    tally: Tally | None = None,
) -> Iterator[tuple[int, ExampleRow | RejectedRow]]:
    """Every row with its number, as it is in the file: not checked, not cleaned."""
    extra = extra_columns(layout, mapping)
    for number, cells in read_records(path, layout, most=most, tally=tally):
        if isinstance(cells, RejectedRow):
            yield number, cells
        else:
            yield number, _mapped(number, cells, layout, mapping, extra)


def guess(path: Path, layout: Layout) -> Mapping:
    """Which column, or which nested field, is what."""
    columns = layout.choices
    return guess_mapping(columns, sample(path, layout, columns=columns))


def extra_columns(layout: Layout, mapping: Mapping) -> tuple[str, ...]:
    """The columns that are kept with each row, besides text, label and split."""
    if not mapping.keep_extra:
        return ()
    used = set(mapping.columns)
    return tuple(c for c in layout.columns if c not in used)[:MAX_EXTRA_COLUMNS]


def _mapped(
    number: int, cells: dict[str, Any], layout: Layout, mapping: Mapping, extra: tuple[str, ...]
) -> ExampleRow | RejectedRow:
    values = []
    for column in (mapping.text, mapping.label, mapping.second_label):
        if column is None:
            values.append("")
            continue
        there, value = at_path(cells, column) if layout.paths else (column in cells, None)
        if not there:
            reason = (
                "This field is missing."
                if layout.kind in FIELDS
                else f"The row has only {len(cells)} of {len(layout.columns)} columns."
            )
            if column != mapping.text and mapping.keep_unlabelled:
                values.append("")
                continue
            return RejectedRow(number, column, reason)
        value = value if layout.paths else cells[column]
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, list | dict):
            return RejectedRow(number, column, _nested(value))
        values.append(plain(value))
    text, label, second = values
    if mapping.second_label:
        label = JOINED_BY.join(part.strip() for part in (label, second) if part.strip())
    split = plain(at_path(cells, mapping.split)[1]) if mapping.split else None
    meta = {column: kept for column in extra if (kept := _extra_cell(cells.get(column)))}
    return ExampleRow(text, label, split, f"row {number}", meta)


def _nested(value: list[Any] | dict[str, Any]) -> str:
    what = "a list or an object" if isinstance(value, dict) else f"a list of {len(value):,}"
    return f"It is {what}, not a text. Choose one of the nested fields."


def _extra_cell(value: Any) -> str:
    cell = _shown(value)[: MAX_EXTRA_CELL + 1]
    if len(cell) > MAX_EXTRA_CELL:
        cell = f"{cell[: MAX_EXTRA_CELL - 1]}…"
    # An extra column never costs its row: what cannot be kept in a database is shown as such.
    return cell.encode("utf-8", "replace").decode().replace("\0", "�")


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return plain(value)


def _begins(path: Path, encoding: str) -> str:
    """The first characters after any blanks."""
    with open_text(path, encoding) as text:
        return text.read(BEGINNING).lstrip()


def _is_json(begins: str, first: str, second: str) -> bool:
    """Whether a file is one JSON value, and not an object a line.

    Args:
        begins: its first characters.
        first, second: its first lines with anything in them; empty where they are too long.
    """
    if begins.startswith("["):  # not merely a text in brackets, such as "[removed],spam"
        return bool(_ARRAY.match(begins))
    if not begins.startswith("{") or second.lstrip().startswith("{"):
        return False
    if jsonl.is_large(first):
        return not second.strip()
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        goes_on = second.lstrip().startswith(('"', "[", "]", "}"))
        return goes_on or not first.strip() or bool(_OPENED.search(first))
    if second.strip() or not isinstance(value, dict):
        return False
    lists = [inner for inner in value.values() if isinstance(inner, list)]
    return any(inner and isinstance(inner[0], dict) for inner in lists) and not any(
        isinstance(inner, str) for inner in value.values()
    )


def estimate_rows(path: Path, layout: Layout) -> int:
    """About how many rows a file has, quickly: for a progress bar."""
    if layout.kind in PACKED:
        return layout.claimed_rows
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(CHUNK_BYTES), b""))
