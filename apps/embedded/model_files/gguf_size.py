"""Detection of incomplete GGUF files by their header (pure).

The header of an interrupted download is complete. It has the offset of each tensor, so a file that
ends before the last tensor is incomplete; no tensor has to be read.
"""

import struct
from pathlib import Path
from typing import BinaryIO

MAGIC = b"GGUF"
DEFAULT_ALIGNMENT = 32
# A header has some megabytes, nearly all of them the vocabulary.
MAX_ENTRIES = 10_000_000
CUT_OFF = "is incomplete: it ends before its last tensor. Download or copy it again."
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY, _UINT32 = 8, 9, 4


class CutOff(Exception):
    """The file ends within its header."""


def is_cut_off(path: Path) -> bool:
    """Return True if a file that begins as GGUF ends before its last tensor.

    False also if the header cannot be parsed: llama.cpp then reports what is wrong.
    """
    with path.open("rb") as file:
        try:
            begin = _last_tensor(file)
        except CutOff:
            return True
        except (ValueError, OverflowError, OSError):  # an impossible length
            return False
        size = path.stat().st_size
    return begin is not None and begin >= size


def _last_tensor(file: BinaryIO) -> int | None:
    """Return the offset of the last tensor in bytes; None if there are no tensors.

    Raises:
        CutOff: the file ends within its header.
        ValueError: not a GGUF file of a known version.
    """
    if _take(file, 4) != MAGIC:
        raise ValueError("not a GGUF file")
    version, tensors, entries = _numbers(file, "<IQQ")
    if version not in {2, 3} or max(tensors, entries) > MAX_ENTRIES:
        raise ValueError("an unknown version")
    alignment = DEFAULT_ALIGNMENT
    for _ in range(entries):
        key = _string(file)
        (kind,) = _numbers(file, "<I")
        if key == b"general.alignment" and kind == _UINT32:
            (alignment,) = _numbers(file, "<I")
        else:
            _skip(file, kind)
    last = 0
    for _ in range(tensors):
        _string(file)
        (dimensions,) = _numbers(file, "<I")
        if dimensions > 16:
            raise ValueError("not a tensor")
        *_, offset = _numbers(file, f"<{dimensions}QIQ")
        last = max(last, offset)
    if not tensors or not alignment:
        return None
    return -(-file.tell() // alignment) * alignment + last


def _skip(file: BinaryIO, kind: int, depth: int = 0) -> None:
    if kind == _STRING:
        _string(file)
    elif kind == _ARRAY and depth < 4:
        inner, length = _numbers(file, "<IQ")
        if size := _SIZES.get(inner):
            file.seek(size * length, 1)
            return
        if length > MAX_ENTRIES:
            raise ValueError("an impossible array")
        for _ in range(length):
            _skip(file, inner, depth + 1)
    elif kind in _SIZES:
        file.seek(_SIZES[kind], 1)
    else:
        raise ValueError("an unknown type")


def _string(file: BinaryIO) -> bytes:
    (length,) = _numbers(file, "<Q")
    if length > 1 << 32:
        raise ValueError("an impossible string")
    if length > 100:  # no key that is needed here
        file.seek(length, 1)
        return b""
    return _take(file, length)


def _numbers(file: BinaryIO, form: str) -> tuple[int, ...]:
    return struct.unpack(form, _take(file, struct.calcsize(form)))


def _take(file: BinaryIO, length: int) -> bytes:
    data = file.read(length)
    if len(data) != length:
        raise CutOff
    return data
