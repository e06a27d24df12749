"""An Excel workbook as a stream of rows, opened only if it unpacks to a safe size.

openpyxl reads a sheet as a stream and the table of shared texts whole; an .xlsx is a ZIP file, so
what its parts unpack to is limited before anything is unpacked (`zipfile` reads no more than the
size a part declares).
"""

import re
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from apps.files.errors import FormatError

MAX_UNPACKED = 1 << 30  # bytes of all parts together; a million rows of short texts have 200 MB
MAX_SHARED_TEXTS = 128 << 20  # held in memory while the sheet is read
MAX_PARTS = 10_000
SMALL_PART = 32 << 20
MAX_RATIO = 200  # of a larger part, unpacked to packed; sheets pack ten to fifty times
MAX_ROWS = 1_048_576  # what Excel itself allows
CHUNK_BYTES = 1 << 20

_FORMULA_TAG = re.compile(rb"<(?:\w+:)?f[\s>/]")


def is_excel(path: Path) -> bool:
    """Return True if a ZIP file is an Excel workbook."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return False


def check_sizes(path: Path) -> None:
    """Raises:
    FormatError: the workbook is damaged, or unpacks to too much.
    """
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


def has_formulas(path: Path, part: str) -> bool:
    """Return True if a sheet's XML holds a formula: only then it is read twice."""
    with zipfile.ZipFile(path) as archive, archive.open(part) as file:
        tail = b""
        while chunk := file.read(CHUNK_BYTES):
            if _FORMULA_TAG.search(tail + chunk):
                return True
            tail = chunk[-32:]
    return False


class Workbook:
    """openpyxl's streaming reader, with all its failures as `FormatError`."""

    def __init__(self, path: Path, *, formulas: bool = False) -> None:
        import openpyxl

        self._file = path.open("rb")  # openpyxl asks a file name for the suffix .xlsx
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about unknown styles and extensions
                self._book = openpyxl.load_workbook(
                    self._file, read_only=True, data_only=not formulas, keep_links=False
                )
        except Exception as error:  # a crafted file raises anything
            self._file.close()
            raise _damaged(error) from error

    def __enter__(self) -> "Workbook":
        return self

    def __exit__(self, *error: object) -> None:
        self._book.close()
        self._file.close()

    @property
    def sheet_names(self) -> list[str]:
        return [sheet.title for sheet in self._book.worksheets]

    def part(self, sheet: str) -> str:
        """Return the path of the sheet's XML inside the ZIP file."""
        return str(self._book[sheet]._worksheet_path)

    def declared_rows(self, sheet: str) -> int:
        return int(self._book[sheet].max_row or 1)

    def rows(self, sheet: str, width: int) -> Iterator[tuple[Any, ...]]:
        """Yield the values of each row, at most `width` of them."""
        worksheet = self._book[sheet]
        worksheet.reset_dimensions()  # the declared size is often wrong
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
