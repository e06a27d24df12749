"""Bytes into lines: which encoding, and no line longer than memory allows."""

import codecs
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TextIO

from apps.files.layout import ENCODINGS, MAX_LINE
from apps.files.rows import FormatError

CHUNK_BYTES = 1 << 20
# Of a larger file so much is looked at while a person waits: its beginning, and pieces all over it.
SAMPLE_BYTES = 8 << 20
LEAST_COST = 80  # characters
PIECE_BYTES = 256 << 10
UTF8 = "utf-8-sig"
OLD_WINDOWS = "cp1252"
CYRILLIC = "cp1251"
CONTINUATION = bytes(range(0x80, 0xC0))
LETTERS = 6  # different ones, at least, of which an alphabet is told
HIGH = bytes(range(0x80, 0x100))
_HIGH_WORD = re.compile(rb"[\xa8\xb8\xc0-\xff]{3,}")
_LOWER = re.compile(rb"[\xb8\xe0-\xff]")
_UNDECODED = re.compile("[\udc80-\udcff]")

REFUSED = (
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
    one whose bytes outside ASCII are mostly not UTF-8 comes from an old Windows program. Of a large
    file pieces are looked at; `settled_encoding` looks at all of it when it is imported.

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
    if wide := _wide(start):
        return wide, False
    mark = start.startswith(codecs.BOM_UTF8)
    # Text has hardly a control character; a stray NUL costs its row only.
    controls = sum(start[:65536].count(byte) for byte in (0, 1, 2, 3, 4, 5, 6, 14, 15, 16))
    if not mark and controls > len(start[:65536]) // 100 + 2:
        raise FormatError(
            "This is not a text file. Choose a CSV, TSV, JSONL, plain text, Excel or Parquet file."
        )
    encoding, _ = _encoding_of(path, path.stat().st_mtime_ns, False)
    return encoding, mark


def settled_encoding(path: Path, encoding: str) -> str:
    """The encoding by all of a file of which `find_encoding` looked at pieces.

    Another one only where those pieces were ASCII, which looks the same in both.

    Raises:
        FormatError: most of the file is written in another one than the pieces. It names the first
            byte outside UTF-8.
    """
    if encoding not in {UTF8, OLD_WINDOWS, CYRILLIC} or path.stat().st_size <= SAMPLE_BYTES:
        return encoding
    changed = path.stat().st_mtime_ns
    whole, _ = _encoding_of(path, changed, True)
    _, told = _encoding_of(path, changed, False)
    if whole == encoding or not told:
        return whole
    line, byte, at = _first_not_utf8(path)
    raise FormatError(
        f"It looked like {ENCODINGS[encoding]} in the parts that were looked at first, but most "
        f"of it is {ENCODINGS[whole]}. The first byte that is not UTF-8 is 0x{byte:02X} in line "
        f"{line:,} (byte {at:,} of the file). Choose the encoding and import it again."
    )


@lru_cache(maxsize=64)
def _encoding_of(path: Path, changed: int, whole: bool) -> tuple[str, bool]:
    """The encoding, and whether a character outside ASCII told.

    Remembered, since a preview asks again with every choice of a column.
    """
    good, bad = _outside_ascii(path, whole)
    told = good + bad > 0
    if bad <= good:
        return UTF8, told
    if _is_cyrillic(path, whole) and _decodes(path, CYRILLIC, whole):
        return CYRILLIC, told
    return OLD_WINDOWS if _decodes(path, OLD_WINDOWS, whole) else UTF8, told


def _wide(start: bytes) -> str:
    """UTF-16 without a byte order mark: of Western text every second byte is zero."""
    start = start[:65536]
    half = len(start) // 2
    even, odd = start[: 2 * half : 2].count(0), start[1 : 2 * half : 2].count(0)
    if half > 1 and odd > half // 3 and even <= half // 100:
        return "utf-16-le"
    if half > 1 and even > half // 3 and odd <= half // 100:
        return "utf-16-be"
    return ""


def _is_cyrillic(path: Path, whole: bool) -> bool:
    """Whether most letters outside ASCII stand together in words, in lower case as Windows-1251 has
    it. In Western text they stand alone among others."""
    inside = lower = total = 0
    different: set[int] = set()
    for piece in _pieces(path, whole):
        for chunk in piece:
            words = _HIGH_WORD.findall(chunk)
            inside += sum(map(len, words))
            if len(different) < LETTERS:
                different.update(*words)
            lower += sum(len(_LOWER.findall(word)) for word in words)
            total += len(chunk) - len(chunk.translate(None, HIGH))
    several = len(different) >= LETTERS
    return several and inside > 0.6 * total and lower > 0.6 * inside


def _outside_ascii(path: Path, whole: bool) -> tuple[int, int]:
    """How many characters outside ASCII are UTF-8, and how many bytes are not."""
    good = bad = 0
    for piece in _pieces(path, whole):
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        for chunk in piece:
            if chunk.isascii() and not decoder.getstate()[0]:
                continue
            text = decoder.decode(chunk)
            if not text.isascii():
                wrong = len(_UNDECODED.findall(text))
                bad += wrong
                good += len(text) - len(text.encode("ascii", "ignore")) - wrong
    return good, bad


def _decodes(path: Path, encoding: str, whole: bool) -> bool:
    try:
        for piece in _pieces(path, whole):
            for chunk in piece:  # each byte is a character
                chunk.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _pieces(path: Path, whole: bool) -> Iterator[Iterator[bytes]]:
    """What follows each other in a file: all of it, or `SAMPLE_BYTES` from its whole length."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if whole or size <= SAMPLE_BYTES:
            yield iter(lambda: file.read(CHUNK_BYTES), b"")
            return
        yield iter([file.read(CHUNK_BYTES)])
        count = (SAMPLE_BYTES - CHUNK_BYTES) // PIECE_BYTES
        for number in range(1, count + 1):
            file.seek(CHUNK_BYTES + (size - CHUNK_BYTES - PIECE_BYTES) * number // count)
            # It may begin amid a character: up to three bytes then continue one.
            piece = file.read(PIECE_BYTES)
            head = piece[:3].lstrip(CONTINUATION)
            yield iter([head + piece[3:]])


def _first_not_utf8(path: Path) -> tuple[int, int, int]:
    """The line of the first byte that is not UTF-8, the byte, and how many come before it."""
    at = 0
    line = 1
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    with path.open("rb") as file:
        for chunk in iter(lambda: file.read(CHUNK_BYTES), b""):
            text = decoder.decode(chunk)
            if odd := _UNDECODED.search(text):
                before = text[: odd.start()]
                line += before.count("\n")
                return line, ord(odd[0]) - 0xDC00, at + len(before.encode())
            at += len(text.encode())
            line += text.count("\n")
    return line, 0, at


def open_text(path: Path, encoding: str) -> TextIO:
    # newline="": the csv module wants to see line breaks inside quotes as they are.
    return path.open(encoding=encoding, errors="surrogateescape", newline="")


class Lines:
    """The lines of a file, without those that are too long to be held in memory.

    `skipped` says where such lines were: after how many lines that were given out.
    """

    def __init__(self, file: TextIO, *, most: int | None = None) -> None:
        """`most`: about how many characters are read; None for all. Short lines count for more, as
        each costs time."""
        self._file = file
        self._left = most
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

    def with_gaps(self) -> Iterator[str | None]:
        """The lines, and None in the place of each that is too long."""
        reported = 0
        for line in self:
            for _ in self.skipped[reported:]:
                yield None
            reported = len(self.skipped)
            yield line
        for _ in self.skipped[reported:]:
            yield None

    def _readline(self) -> str:
        if self._left is not None and self._left <= 0:
            return ""
        try:
            line = self._file.readline(MAX_LINE)
        except UnicodeError as error:
            raise FormatError(f"The file is incomplete or damaged: {error}.") from error
        if self._left is not None:
            self._left -= max(len(line), LEAST_COST)
        return line
