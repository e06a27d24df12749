"""GGUF headers: real ones, cut off ones, and those made to do harm."""

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.tuning.errors import HeaderError, PlanError
from apps.tuning.planner.model.gguf_header import MAX_KEYS, Skipped, read_header
from apps.tuning.planner.model.model_shape import read_shape
from tests.tiny_gguf import VOCABULARY, write_tiny_gguf

ARRAY, STRING = 9, 8


@pytest.fixture(scope="module")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture
def tiny(tiny_file: Path) -> bytes:
    return tiny_file.read_bytes()


def header_of(*keys: bytes, tensors: int = 0, key_count: int | None = None) -> bytes:
    count = len(keys) if key_count is None else key_count
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, count) + b"".join(keys)


def key(name: bytes, kind: int, value: bytes) -> bytes:
    return struct.pack("<Q", len(name)) + name + struct.pack("<I", kind) + value


def test_read_header_reads_values_and_tensors(tiny: bytes) -> None:
    header = read_header(tiny)
    assert header.complete
    assert header.values["general.architecture"] == "llama"
    assert header.values["tokenizer.ggml.tokens"] == Skipped(VOCABULARY)
    assert {"token_embd.weight", "output.weight"} < {tensor.name for tensor in header.tensors}


def test_read_header_keeps_what_came_before_the_end_of_the_bytes(tiny: bytes) -> None:
    header = read_header(tiny[: tiny.index(b"tokenizer.ggml.tokens") + 100])
    assert not header.complete
    assert header.values["llama.block_count"] == 2
    assert header.tensors == ()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"PK\x03\x04" + bytes(40), "not a GGUF file"),
        (b"GGUF\x03\x00", "first 24 bytes"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "little-endian"),
        (header_of(key_count=MAX_KEYS + 1), "promises"),
        (header_of(tensors=2**60), "promises"),
        (header_of(struct.pack("<Q", 2**62)), "bytes: the file is damaged"),
        (header_of(key(b"a", 77, b"")), "unknown type 77"),
        (header_of(*[key(b"a", 4, bytes(4))] * 2), "twice"),
        # Arrays within arrays: a reader that follows them runs out of stack.
        (header_of(key(b"a", ARRAY, struct.pack("<IQ", ARRAY, 1))), "unknown type 9"),
        (header_of(key(b"a", ARRAY, struct.pack("<IQ", STRING, 2**50))), "promises"),
    ],
)
def test_read_header_names_what_is_wrong(data: bytes, said: str) -> None:
    with pytest.raises(HeaderError, match=said):
        read_header(data)


def test_read_header_allocates_nothing_for_promised_lengths() -> None:
    number_of_floats = struct.pack("<IQ", 6, 2**60)
    header = read_header(header_of(key(b"a", ARRAY, number_of_floats)))
    assert (header.values, header.complete) == ({}, False)


CHANGES = st.lists(
    st.tuples(st.integers(0, 2000), st.binary(min_size=1, max_size=8)), min_size=1, max_size=5
)


def read_or_refuse(data: bytes) -> None:
    with suppress(PlanError):
        read_shape(read_header(data))


@given(CHANGES)
def test_a_damaged_header_is_read_or_refused(
    tiny_file: Path, changes: list[tuple[int, bytes]]
) -> None:
    damaged = bytearray(tiny_file.read_bytes()[:2048])
    for at, new in changes:
        damaged[at : at + len(new)] = new
    read_or_refuse(bytes(damaged))


@given(st.binary(max_size=300))
def test_any_bytes_after_the_counts_are_read_or_refused(rest: bytes) -> None:
    read_or_refuse(header_of(tensors=3, key_count=5) + rest)


def test_a_file_longer_than_the_header_is_not_read_on(tiny: bytes) -> None:
    assert read_header(tiny + b"\xff" * 1000) == read_header(tiny)
