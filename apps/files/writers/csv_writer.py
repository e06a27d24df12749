"""CSV for spreadsheets: a cell that a spreadsheet would run as a formula gets an apostrophe.

The reader removes that apostrophe from files with a header of this module, so that writing a table
and reading it again changes nothing.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from apps.core.text.storable import to_storable
from apps.files.writers.table_writer import Record, TableWriter

BYTE_ORDER_MARK = "\ufeff"  # without it Excel reads UTF-8 as Windows-1252
# The first characters of a formula, and what spreadsheets skip before one (the last four are full
# width).
FORMULA_START = "=+-@\t\r\n\0＝＋－＠"
_FORMULA = re.compile(rf"'*[{re.escape(FORMULA_START)}]")
_NUMBER = re.compile(r"-?\d{1,20}(\.\d{1,20})?", re.ASCII)
# The mark of a header of ours: only the first name is quoted, without need. No other program
# writes that.
_NEEDLESS = r'"[^",;|\t\r\n]+"'
OWN_HEADER = re.compile(rf"{_NEEDLESS}(?P<more>,(?!{_NEEDLESS}(?:,|$)))?")
OLD_HEADER = "text,label,split"  # written before the mark existed; also in files of others


class CsvWriter(TableWriter):
    """RFC 4180 with a byte order mark and a header."""

    def __init__(self, columns: Sequence[str], *, plain_numbers: bool = False) -> None:
        """
        Args:
            plain_numbers: write a text such as "-5" without an apostrophe.
        """
        self._columns = tuple(columns)
        self._plain_numbers = plain_numbers

    def header(self) -> bytes:
        return _encoded(BYTE_ORDER_MARK + csv_header(self._columns))

    def encode(self, records: Iterable[Record]) -> bytes:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\r\n")
        columns, cell = self._columns, self._cell
        writer.writerows([cell(record.get(name)) for name in columns] for record in records)
        return _encoded(out.getvalue())

    def _cell(self, value: Any) -> Any:
        if isinstance(value, str):
            is_plain = self._plain_numbers and _NUMBER.fullmatch(value)
            return value if is_plain else spreadsheet_safe(value)
        return value


def csv_header(columns: Sequence[str]) -> str:
    """Return the header by which the reader knows that the cells below were made safe."""
    first, *others = map(spreadsheet_safe, columns)
    quoted = '"' + first.replace('"', '""') + '"'
    if not others:
        return f"{quoted}\r\n"
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(others)
    return f"{quoted},{out.getvalue()}"


def spreadsheet_safe(cell: str) -> str:
    """Return the cell, with an apostrophe in front if a spreadsheet would run it as a formula."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def _encoded(text: str) -> bytes:
    return to_storable(text).encode()
