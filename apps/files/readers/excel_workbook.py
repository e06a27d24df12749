"""Excel (.xlsx), row by row. Of formulas the values are read that Excel saved with them.

openpyxl reads a sheet as a stream and the table of shared texts whole; an .xlsx is a ZIP file, so
what its parts unpack to is limited before anything is unpacked (`zipfile` reads no more than the
size a part declares).
"""

import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from apps.files.column_guess import KNOWN_NAMES
from apps.files.layout import (
    MAX_CELL,
    MAX_COLUMNS,
    SAMPLE_ROWS,
    Kind,
    Layout,
    Records,
    Said,
    column_names,
    looks_like_header,
)
from apps.files.rows import FormatError, RejectedRow, plain

MAX_UNPACKED = 1 << 30  # bytes of all parts together; a million rows of short texts have 200 MB
MAX_SHARED_TEXTS = 128 << 20  # held in memory while the sheet is read
MAX_PARTS = 10_000
SMALL_PART = 32 << 20
MAX_RATIO = 200  # of a larger part, unpacked to packed; sheets pack ten to fifty times
MAX_ROWS = 1_048_576  # what Excel itself allows
CHUNK_BYTES = 1 << 20

_FORMULA_TAG = re.compile(rb"<(?:\w+:)?f[\s>/]")
_ERROR = re.compile(r"#(NULL!|DIV/0!|VALUE!|REF!|NAME\?|NUM!|N/A|SPILL!|CALC!|GETTING_DATA)")


def is_excel(path: Path) -> bool:
    """Whether a ZIP file is an Excel workbook."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return False


def inspect(path: Path, *, said: Said) -> Layout:
    """Raises:
    FormatError: it is damaged, unpacks to too much, or has no table in it.
    """
    if not is_excel(path):
        raise FormatError(
            "This is a ZIP file, or a damaged Excel file. Unpack it, or save it again, and choose "
            "that."
        )
    _check_sizes(path)
    with _Workbook(path) as book:
        names = tuple(book.sheet_names)
        sheet = said.sheet if said.sheet in names else ""
        rows: list[list[str]] = []
        for name in (sheet,) if sheet else names:
            rows = _first_rows(book, name)
            if rows:
                sheet = name
                break
        formulas = bool(rows) and _has_formulas(path, book.part(sheet))
        claimed = book.claimed_rows(sheet) if rows else 0
    if not rows:
        raise FormatError("The workbook is empty.")
    if len(rows[0]) > MAX_COLUMNS:
        raise FormatError(f"The first row has more than {MAX_COLUMNS:,} columns.")
    header = looks_like_header(rows, KNOWN_NAMES) if said.header is None else said.header
    width = max(map(len, rows)) if not header else len(rows[0])
    columns, cleaned = column_names(rows[0] + [""] * (width - len(rows[0])), header)
    return Layout(
        Kind.EXCEL,
        "",
        columns,
        header=header,
        cleaned_names=cleaned,
        sheets=names,
        sheet=sheet,
        formulas=formulas,
        claimed_rows=claimed,
    )


def records(path: Path, layout: Layout) -> Records:
    _check_sizes(path)
    width = len(layout.columns)
    with _Workbook(path) as book:
        values = book.rows(layout.sheet, width + 1)
        if not layout.formulas:
            yield from _named(values, layout)
            return
        with _Workbook(path, formulas=True) as written:
            both = zip_longest(values, written.rows(layout.sheet, width + 1), fillvalue=())
            yield from _named((_with_saved(saved, formula) for saved, formula in both), layout)


class _Unsaved:
    """The cell holds a formula that nobody has computed yet."""


def _with_saved(values: tuple[Any, ...], written: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        _Unsaved if value is None and isinstance(formula, str) and formula[:1] == "=" else value
        for value, formula in zip_longest(values, written)
    )


def _filled(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """The rows with anything in them, and their numbers."""
    empty = None
    for number, values in enumerate(rows, start=1):
        if values is empty:  # openpyxl fills a gap with one and the same row
            continue
        if all(value is None or value == "" for value in values):
            empty = values
        else:
            yield number, values


def _named(rows: Iterable[tuple[Any, ...]], layout: Layout) -> Records:
    waiting_for_header = layout.header
    for number, values in _filled(rows):
        if waiting_for_header:
            waiting_for_header = False
            continue
        yield number, _cells(number, values, layout)


def _cells(number: int, values: tuple[Any, ...], layout: Layout) -> dict[str, Any] | RejectedRow:
    if any(value is not None for value in values[len(layout.columns) :]):
        return RejectedRow(
            number,
            "",
            f"The row has more cells than the table has columns ({len(layout.columns)}).",
        )
    cells: dict[str, Any] = {}
    for column, value in zip(layout.columns, values, strict=False):
        if value is _Unsaved:
            return RejectedRow(
                number,
                column,
                "It is a formula without a saved value. Open the file in Excel or LibreOffice, "
                "save it and choose it again.",
            )
        if isinstance(value, str):
            if _ERROR.fullmatch(value):
                return RejectedRow(number, column, f"The cell has an Excel error: {value}.")
            if len(value) > MAX_CELL:
                return RejectedRow(number, column, f"More than {MAX_CELL:,} characters.")
        cells[column] = value
    return cells


def _first_rows(book: "_Workbook", sheet: str) -> list[list[str]]:
    rows: list[list[str]] = []
    for _, values in _filled(book.rows(sheet, MAX_COLUMNS + 1)):
        cells = [plain(value) for value in values]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            rows.append(cells)
        if len(rows) == SAMPLE_ROWS:
            break
    return rows


def _check_sizes(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise FormatError("The Excel file is incomplete or damaged. Save it again.") from error
    shared = sum(p.file_size for p in parts if p.filename.lower().endswith("sharedstrings.xml"))
    total = sum(part.file_size for part in parts)
    packs = any(p.file_size > max(SMALL_PART, MAX_RATIO * p.compress_size) for p in parts)
    if packs or total > MAX_UNPACKED or shared > MAX_SHARED_TEXTS or len(parts) > MAX_PARTS:
        raise FormatError(
            f"The Excel file unpacks to {total / 2**20:,.0f} MB, which is too much to read safely. "
            "Save the sheet as CSV and choose that."
        )


def _has_formulas(path: Path, part: str) -> bool:
    """Looks for a formula in a sheet's XML: only then it has to be read twice."""
    with zipfile.ZipFile(path) as archive, archive.open(part) as file:
        tail = b""
        while chunk := file.read(CHUNK_BYTES):
            if _FORMULA_TAG.search(tail + chunk):
                return True
            tail = chunk[-32:]
    return False


class _Workbook:
    """openpyxl's streaming reader, its many ways to fail told as one."""

    def __init__(self, path: Path, *, formulas: bool = False) -> None:
        import openpyxl

        self._file = path.open("rb")  # by its name openpyxl would ask for the ending .xlsx
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of styles and extensions it does not know
                self._book = openpyxl.load_workbook(
                    self._file, read_only=True, data_only=not formulas, keep_links=False
                )
        except Exception as error:  # whatever a made-up file brings it to
            self._file.close()
            raise _damaged(error) from error

    def __enter__(self) -> "_Workbook":
        return self

    def __exit__(self, *error: object) -> None:
        self._book.close()
        self._file.close()

    @property
    def sheet_names(self) -> list[str]:
        return [sheet.title for sheet in self._book.worksheets]

    def part(self, sheet: str) -> str:
        """The name of the sheet's XML inside the file."""
        return str(self._book[sheet]._worksheet_path)

    def claimed_rows(self, sheet: str) -> int:
        return int(self._book[sheet].max_row or 1)

    def rows(self, sheet: str, width: int) -> Iterator[tuple[Any, ...]]:
        """The values of each row, at most `width` of them."""
        worksheet = self._book[sheet]
        worksheet.reset_dimensions()  # what a file claims of its size is often wrong
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield from worksheet.iter_rows(max_row=MAX_ROWS, max_col=width, values_only=True)
        except FormatError:
            raise
        except Exception as error:
            raise _damaged(error) from error


def _damaged(error: Exception) -> Exception:
    if isinstance(error, MemoryError):
        return error
    return FormatError(
        f"The Excel file cannot be read ({type(error).__name__}). Save it again, or as CSV."
    )
