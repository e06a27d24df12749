"""Bytes into lines: which encoding, and no line longer than memory allows."""

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from apps.datasets.formats.layout import MAX_LINE
from apps.datasets.formats.rows import FormatError

CHUNK_BYTES = 1 << 20
UTF8 = "utf-8-sig"
_UNDECODED = re.compile("[\udc80-\udcff]")

REFUSED = (
    (b"PK\x03\x04", "a ZIP file, or a damaged Excel file. Unpack it, or save it again,"),
    (b"\xd0\xcf\x11\xe0", "an old Excel file (.xls). Save it as .xlsx or CSV"),
    (b"\x1f\x8b", "a gzip file. Unpack it first"),
    (b"BZh", "a bzip2 file. Unpack it first"),
    (b"\xfd7zXZ", "an xz file. Unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file. Unpack it first"),
    (b"%PDF", "a PDF. Save its text as CSV"),
    (b"SQLite format 3", "an SQLite database. Export the table as CSV"),
)


def find_encoding(path: Path) -> tuple[str, bool]:
    """The encoding of a text file and whether it begins with a byte order mark.

    A file that is mostly UTF-8 is read as such and its undecodable rows are rejected one by one;
    one whose bytes outside ASCII are mostly not UTF-8 comes from an old Windows program.

    Raises:
        FormatError: it is no text file.
    """
    with path.open("rb") as file:
        start = file.read(CHUNK_BYTES)
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32", True
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16", True
    for magic, what in REFUSED:
        if start.startswith(magic):
            raise FormatError(f"This is {what} and choose that.")
    # Text has hardly a control character; a stray NUL costs its row only.
    controls = sum(start[:65536].count(byte) for byte in (0, 1, 2, 3, 4, 5, 6, 14, 15, 16))
    if controls > len(start[:65536]) // 100 + 2:
        raise FormatError(
            "This is not a text file. Choose a CSV, TSV, JSONL, plain text, Excel or Parquet file."
        )
    good, bad = _outside_ascii(path)
    encoding = UTF8 if bad <= good or not _decodes(path, "cp1252") else "cp1252"
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


def _decodes(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as file:
        try:
            while chunk := file.read(CHUNK_BYTES):
                decoder.decode(chunk)
        except UnicodeDecodeError:
            return False
    return True


def open_text(path: Path, encoding: str) -> TextIO:
    # newline="": the csv module wants to see line breaks inside quotes as they are.
    return path.open(encoding=encoding, errors="surrogateescape", newline="")


class Lines:
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
