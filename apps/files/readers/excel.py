"""Excel (.xlsx), row by row. Formulas are read as the values that Excel saved with them."""

import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from apps.files.columns import KNOWN_COLUMN_NAMES
from apps.files.errors import FormatError
from apps.files.header import column_names, looks_like_header
from apps.files.layout import (
    MAX_CELL,
    MAX_COLUMNS,
    SAMPLE_ROWS,
    Cells,
    FileKind,
    Layout,
    ReadOptions,
    Records,
)
from apps.files.readers.excel_workbook import Workbook, check_sizes, has_formulas, is_excel
from apps.files.rows import RejectedRow, cell_text

_ERROR = re.compile(r"#(NULL!|DIV/0!|VALUE!|REF!|NAME\?|NUM!|N/A|SPILL!|CALC!|GETTING_DATA)")


def detect_layout(path: Path, *, options: ReadOptions) -> Layout:
    """Raises:
    FormatError: the file is damaged, unpacks to too much, or has no table in it.
    """
    if not is_excel(path):
        raise FormatError(
            "This is a ZIP file, or a damaged Excel file. Unpack it, or save it again, and choose "
            "that."
        )
    check_sizes(path)
    with Workbook(path) as book:
        names = tuple(book.sheet_names)
        sheet, rows = _choose_sheet(book, options.sheet)
        formulas = bool(rows) and has_formulas(path, book.part(sheet))
        declared = book.declared_rows(sheet) if rows else 0
    if not rows:
        raise FormatError("The workbook is empty.")
    if len(rows[0]) > MAX_COLUMNS:
        raise FormatError(f"The first row has more than {MAX_COLUMNS:,} columns.")
    header = (
        looks_like_header(rows, KNOWN_COLUMN_NAMES) if options.header is None else options.header
    )
    width = max(map(len, rows)) if not header else len(rows[0])
    columns, cleaned = column_names(rows[0] + [""] * (width - len(rows[0])), header)
    return Layout(
        FileKind.EXCEL,
        "",
        columns,
        header=header,
        cleaned_names=cleaned,
        sheets=names,
        sheet=sheet,
        formulas=formulas,
        estimated_rows=declared,
    )


def _choose_sheet(book: Workbook, wanted: str | None) -> tuple[str, list[list[str]]]:
    """Return the wanted sheet, or else the first that is not empty, with its first rows."""
    names = book.sheet_names
    for name in [wanted] if wanted is not None and wanted in names else names:
        if rows := _first_rows(book, name):
            return name, rows
    return "", []


def read_records(path: Path, layout: Layout) -> Records:
    check_sizes(path)
    width = len(layout.columns)
    with Workbook(path) as book:
        values = book.rows(layout.sheet, width + 1)
        if not layout.formulas:
            yield from _named(values, layout)
            return
        with Workbook(path, formulas=True) as written:
            both = zip_longest(values, written.rows(layout.sheet, width + 1), fillvalue=())
            yield from _named((_with_saved(saved, formula) for saved, formula in both), layout)


class _Unsaved:
    """Marks a cell with a formula that has no saved value."""


def _with_saved(values: tuple[Any, ...], written: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        _Unsaved if value is None and isinstance(formula, str) and formula[:1] == "=" else value
        for value, formula in zip_longest(values, written)
    )


def _filled(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield the rows that are not empty, with their numbers."""
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


def _cells(number: int, values: tuple[Any, ...], layout: Layout) -> Cells | RejectedRow:
    if any(value is not None for value in values[len(layout.columns) :]):
        return RejectedRow(
            number,
            "",
            f"The row has more cells than the table has columns ({len(layout.columns)}).",
        )
    cells: dict[str, object] = {}
    for column, value in zip(layout.columns, values, strict=False):
        if value is _Unsaved:
            return RejectedRow(
                number,
                column,
                "This formula has no saved value. Open the file in Excel or LibreOffice, save it "
                "and upload it again.",
            )
        if isinstance(value, str):
            if _ERROR.fullmatch(value):
                return RejectedRow(number, column, f"The cell has an Excel error: {value}.")
            if len(value) > MAX_CELL:
                return RejectedRow(number, column, f"More than {MAX_CELL:,} characters.")
        cells[column] = value
    return cells


def _first_rows(book: Workbook, sheet: str) -> list[list[str]]:
    rows: list[list[str]] = []
    for _, values in _filled(book.rows(sheet, MAX_COLUMNS + 1)):
        cells = [cell_text(value) for value in values]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            rows.append(cells)
        if len(rows) == SAMPLE_ROWS:
            break
    return rows
