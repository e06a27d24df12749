"""Detects the encoding of a text file."""

import codecs
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from apps.files.errors import FormatError
from apps.files.layout import ENCODINGS

CHUNK_BYTES = 1 << 20
# The part of a larger file that is read while a person waits: its start, and pieces all over it.
SAMPLE_BYTES = 8 << 20
PIECE_BYTES = 256 << 10
UTF8 = "utf-8-sig"
OLD_WINDOWS = "cp1252"
CYRILLIC = "cp1251"
CONTINUATION = bytes(range(0x80, 0xC0))
MIN_LETTERS = 6  # different letters that identify an alphabet
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


def detect_encoding(path: Path) -> tuple[str, bool]:
    """Return the encoding of a text file, and True if it begins with a byte order mark.

    A file that is mostly UTF-8 is read as such and its undecodable rows are rejected one by one;
    one whose bytes outside ASCII are mostly not UTF-8 comes from an old Windows program. Of a large
    file only pieces are read; `confirm_encoding` reads all of it when it is imported.

    Raises:
        FormatError: not a text file.
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


def confirm_encoding(path: Path, encoding: str) -> str:
    """Detect the encoding again from the whole file, of which `detect_encoding` read pieces.

    Another one is returned only if those pieces were ASCII, which looks the same in both.

    Raises:
        FormatError: most of the file is in another encoding than the pieces. The message names
            the first byte outside UTF-8.
    """
    if encoding not in {UTF8, OLD_WINDOWS, CYRILLIC} or path.stat().st_size <= SAMPLE_BYTES:
        return encoding
    changed = path.stat().st_mtime_ns
    whole, _ = _encoding_of(path, changed, True)
    _, has_evidence = _encoding_of(path, changed, False)
    if whole == encoding or not has_evidence:
        return whole
    line, byte, at = _first_not_utf8(path)
    raise FormatError(
        f"The file starts as {ENCODINGS[encoding]}, but most of it is {ENCODINGS[whole]}. "
        f"The first byte that is not UTF-8 is 0x{byte:02X} in "
        f"line {line:,} (byte {at:,} of the file). Choose the encoding and import it again."
    )


@lru_cache(maxsize=64)
def _encoding_of(path: Path, changed: int, whole: bool) -> tuple[str, bool]:
    """Return the encoding, and True if a character outside ASCII is evidence for it.

    Cached, since a preview asks again for every change of a column.
    """
    good, bad = _outside_ascii(path, whole)
    has_evidence = good + bad > 0
    if bad <= good:
        return UTF8, has_evidence
    if _is_cyrillic(path, whole) and _decodes(path, CYRILLIC, whole):
        return CYRILLIC, has_evidence
    return OLD_WINDOWS if _decodes(path, OLD_WINDOWS, whole) else UTF8, has_evidence


def _wide(start: bytes) -> str:
    """Detect UTF-16 without a byte order mark: every second byte of Western text is zero."""
    start = start[:65536]
    half = len(start) // 2
    even, odd = start[: 2 * half : 2].count(0), start[1 : 2 * half : 2].count(0)
    if half > 1 and odd > half // 3 and even <= half // 100:
        return "utf-16-le"
    if half > 1 and even > half // 3 and odd <= half // 100:
        return "utf-16-be"
    return ""


def _is_cyrillic(path: Path, whole: bool) -> bool:
    """Return True if most letters outside ASCII form words, in the lower case of Windows-1251. In
    Western text they stand alone among others."""
    inside = lower = total = 0
    different: set[int] = set()
    for piece in sampled_pieces(path, whole):
        for chunk in piece:
            words = _HIGH_WORD.findall(chunk)
            inside += sum(map(len, words))
            if len(different) < MIN_LETTERS:
                different.update(*words)
            lower += sum(len(_LOWER.findall(word)) for word in words)
            total += len(chunk) - len(chunk.translate(None, HIGH))
    several = len(different) >= MIN_LETTERS
    return several and inside > 0.6 * total and lower > 0.6 * inside


def _outside_ascii(path: Path, whole: bool) -> tuple[int, int]:
    """Count the characters outside ASCII that are UTF-8, and the bytes that are not."""
    good = bad = 0
    for piece in sampled_pieces(path, whole):
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
        for piece in sampled_pieces(path, whole):
            for chunk in piece:  # each byte is a character
                chunk.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def sampled_pieces(path: Path, whole: bool) -> Iterator[Iterator[bytes]]:
    """Yield the pieces of a file, in chunks: all of it, or `SAMPLE_BYTES` spread over it."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if whole or size <= SAMPLE_BYTES:
            yield iter(lambda: file.read(CHUNK_BYTES), b"")
            return
        yield iter([file.read(CHUNK_BYTES)])
        count = (SAMPLE_BYTES - CHUNK_BYTES) // PIECE_BYTES
        for number in range(1, count + 1):
            file.seek(CHUNK_BYTES + (size - CHUNK_BYTES - PIECE_BYTES) * number // count)
            # A piece may begin inside a character: up to three bytes then continue it.
            piece = file.read(PIECE_BYTES)
            head = piece[:3].lstrip(CONTINUATION)
            yield iter([head + piece[3:]])


def _first_not_utf8(path: Path) -> tuple[int, int, int]:
    """Return the line of the first byte that is not UTF-8, the byte, and its offset in the file."""
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
