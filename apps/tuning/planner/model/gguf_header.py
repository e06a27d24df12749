"""Reads the header of a GGUF file from its first megabytes (pure).

`gguf.GGUFReader` is no help here: it maps a whole file and fails on one that is cut off, keeps
two arrays for each token of the vocabulary, and follows nested arrays without a limit.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from math import prod

from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from apps.tuning.errors import HeaderError

HEADER_BYTES = 32 * 1024**2
"""So many first bytes hold the header of every common model, its vocabulary included."""
MAX_KEYS = 4096
MAX_TENSORS = 65_536
MAX_DIMENSIONS = 4
MAX_NAME_BYTES = 1024
# Longer texts (templates) and arrays (vocabularies) are skipped: only their length is kept.
MAX_TEXT_BYTES = 4096
MAX_ARRAY_VALUES = 1024
MAX_ARRAY_STRINGS = 2_000_000


class ValueType(IntEnum):
    STRING = 8
    ARRAY = 9


_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}


@dataclass(frozen=True, slots=True)
class Skipped:
    """A text or an array too long to be kept."""

    length: int


Value = int | float | bool | str | tuple[int | float | bool, ...] | Skipped


@dataclass(frozen=True, slots=True)
class Tensor:
    name: str
    bytes: int | None
    """None: a type that this version does not know."""


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Metadata and tensors of a GGUF file, as far as the bytes reached."""

    values: Mapping[str, Value]
    tensors: tuple[Tensor, ...]
    complete: bool
    """False: the bytes ended within the header, later keys and tensors are missing."""


class _CutOff(Exception):
    """The bytes end here."""


def read_header(data: bytes) -> GgufHeader:
    """Read the header from the first bytes of a file; later bytes are not looked at.

    Raises:
        HeaderError: this is no GGUF file, or one that no program could have written.
    """
    reader = _Reader(data[:HEADER_BYTES])
    try:
        tensor_count, key_count = _read_counts(reader)
    except _CutOff as error:
        raise HeaderError(
            "The file ends within the first 24 bytes of its header: download it again."
        ) from error
    values: dict[str, Value] = {}
    tensors: list[Tensor] = []
    try:
        for _ in range(key_count):
            _read_key(reader, values)
        for _ in range(tensor_count):
            tensors.append(_read_tensor(reader))
    except _CutOff:
        return GgufHeader(values, tuple(tensors), complete=False)
    return GgufHeader(values, tuple(tensors), complete=True)


def _read_counts(reader: "_Reader") -> tuple[int, int]:
    """Number of tensors and keys, after magic and version."""
    if reader.take(4) != b"GGUF":
        raise HeaderError("This is not a GGUF file: it does not begin with “GGUF”.")
    version = reader.number("I")
    if version not in (2, 3):
        raise HeaderError(
            f"GGUF version {version} cannot be read, only 2 and 3 in little-endian order:"
            " convert the model again with a current llama.cpp."
        )
    tensors, keys = reader.number("Q"), reader.number("Q")
    if tensors > MAX_TENSORS or keys > MAX_KEYS:
        raise HeaderError(
            f"The header promises {tensors} tensors and {keys} keys; at most {MAX_TENSORS} and"
            f" {MAX_KEYS} are read. The file is damaged: download it again."
        )
    return tensors, keys


def _read_key(reader: "_Reader", values: dict[str, Value]) -> None:
    name = reader.name()
    if name in values:
        raise HeaderError(f"The key “{name}” stands in the header twice: the file is damaged.")
    kind = reader.number("I")
    values[name] = reader.array(name) if kind == ValueType.ARRAY else reader.scalar(name, kind)


def _read_tensor(reader: "_Reader") -> Tensor:
    name = reader.name()
    dimensions = reader.number("I")
    if dimensions > MAX_DIMENSIONS:
        raise HeaderError(f"The tensor “{name}” has {dimensions} dimensions: the file is damaged.")
    elements = prod(reader.number("Q") for _ in range(dimensions))
    kind = reader.number("I")
    reader.number("Q")  # where its data begins
    return Tensor(name, _tensor_bytes(kind, elements))


def _tensor_bytes(kind: int, elements: int) -> int | None:
    try:
        block, size = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    except (ValueError, KeyError):
        return None
    return elements // block * size


class _Reader:
    """Takes values from bytes in order; every length is checked before it is used."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise _CutOff
        taken, self._at = self._data[self._at : end], end
        return taken

    def skip(self, count: int) -> None:
        self._at += count
        if self._at > len(self._data):
            raise _CutOff

    def number(self, code: str) -> int:
        return int(self.unpack(code, 1)[0])

    def unpack(self, code: str, count: int) -> tuple[int | float | bool, ...]:
        layout = f"<{count}{code}"
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def name(self) -> str:
        length = self.number("Q")
        if length > MAX_NAME_BYTES:
            raise HeaderError(f"A name in the header has {length} bytes: the file is damaged.")
        return self.take(length).decode(errors="replace")

    def scalar(self, name: str, kind: int) -> Value:
        if kind == ValueType.STRING:
            length = self.number("Q")
            if length > MAX_TEXT_BYTES:
                self.skip(length)
                return Skipped(length)
            return self.take(length).decode(errors="replace")
        return self.unpack(_code(name, kind), 1)[0]

    def array(self, name: str) -> Value:
        kind, length = self.number("I"), self.number("Q")
        if kind == ValueType.STRING:
            return self._skip_strings(name, length)
        code = _code(name, kind)
        if length > MAX_ARRAY_VALUES:
            self.skip(length * struct.calcsize(f"<{code}"))
            return Skipped(length)
        return self.unpack(code, length)

    def _skip_strings(self, name: str, length: int) -> Skipped:
        if length > MAX_ARRAY_STRINGS:
            raise HeaderError(f"The key “{name}” promises {length} texts: the file is damaged.")
        for _ in range(length):
            self.skip(self.number("Q"))
        return Skipped(length)


def _code(name: str, kind: int) -> str:
    try:
        return _SCALARS[kind]
    except KeyError as error:
        raise HeaderError(
            f"The key “{name}” has a value of the unknown type {kind}: the file is damaged."
        ) from error
