"""Any file gives rows or a clear error: never a crash, in bounded work."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps import files
from apps.files import ColumnMapping, ExampleRow, FormatError, RejectedRow

TABLE_BYTES = st.lists(
    st.sampled_from(
        [
            *(b"text", b"label", b",", b";", b"\t", b"|", b'"', b'""', b"\n", b"\r\n", b"\r", b" "),
            *(b"{", b"}", b"[", b"]", b":", b'"text":', b"\x00", b"\xff", b"\xe9", "é".encode()),
            *("Привет".encode("cp1251"), b"1.5", b"'=1", b"\xef\xbb\xbf", b"\xff\xfe"),
        ]
    ),
    max_size=40,
).map(b"".join)
MAGIC = st.sampled_from([b"PAR1", b"PK\x03\x04", b"\x1f\x8b", b"%PDF", b"\xd0\xcf\x11\xe0"])


def read(content: bytes, name: str = "a.csv") -> list[ExampleRow | RejectedRow]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "upload"
        path.write_bytes(content)
        layout = files.detect_layout(path, name=name)
        mapping = files.detect_mapping(path, layout)
        return list(files.read_checked_rows(path, layout, mapping))


def rows_or_error(content: bytes, name: str = "a.csv") -> Iterator[ExampleRow | RejectedRow]:
    with suppress(FormatError):
        yield from read(content, name)


@given(st.binary(max_size=200), st.sampled_from(["a.csv", "a.tsv", "a.txt", "a"]))
def test_any_bytes_give_rows_or_a_clear_error(content: bytes, name: str) -> None:
    for row in rows_or_error(content, name):
        if isinstance(row, RejectedRow):
            assert row.reason
        else:
            assert row.text.strip()


@pytest.mark.parametrize("content", [b'""', b'"",""', b'""\n""\n'])
def test_a_file_of_empty_cells_is_no_crash(content: bytes) -> None:
    assert not [row for row in rows_or_error(content) if isinstance(row, ExampleRow)]


@settings(max_examples=200)
@given(TABLE_BYTES, st.sampled_from(["a.csv", "a.tsv", "a.txt"]))
def test_broken_tables_lose_no_line_without_a_reason(content: bytes, name: str) -> None:
    rows = list(rows_or_error(content, name))
    assert len(rows) <= content.count(b"\n") + content.count(b"\r") + 1


@settings(max_examples=5, deadline=None)
@given(MAGIC, st.binary(max_size=60))
def test_damaged_binary_files_are_refused_with_advice(magic: bytes, rest: bytes) -> None:
    with pytest.raises(FormatError, match=r"\w"):
        read(magic + rest)


JSON_CELLS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
OBJECTS = st.fixed_dictionaries({"text": JSON_CELLS, "label": JSON_CELLS})


@given(st.lists(OBJECTS, min_size=1, max_size=6))
def test_every_line_of_jsonl_is_a_row_or_a_rejection(objects: list[dict[str, Any]]) -> None:
    content = "".join(f"{json.dumps(value)}\n" for value in objects).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "upload"
        path.write_bytes(content)
        try:
            layout = files.detect_layout(path)
        except FormatError:
            return
        if layout.kind is not files.FileKind.JSONL:
            return  # one object around a list of objects is JSON
        mapping = ColumnMapping("text", "label", keep_unlabelled=True)
        rows = list(files.read_checked_rows(path, layout, mapping))
    assert len(rows) == len(objects)
    for row, value in zip(rows, objects, strict=True):
        if isinstance(row, ExampleRow) and isinstance(value["text"], str):
            assert row.text == value["text"]


@settings(max_examples=8, deadline=None)
@given(st.lists(OBJECTS, min_size=2, max_size=6))
def test_every_item_of_a_json_list_is_a_row_or_a_rejection(objects: list[dict[str, Any]]) -> None:
    rows = list(rows_or_error(json.dumps(objects).encode(), "a.json"))
    assert len(rows) in {0, len(objects)}


ENCODED = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"])
WORDS = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=12)


@given(st.lists(WORDS, min_size=1, max_size=8), ENCODED)
def test_texts_survive_every_unicode_encoding(words: list[str], encoding: str) -> None:
    content = ("text,label\n" + "".join(f"{word},a\n" for word in words)).encode(encoding)
    rows = read(content)
    assert [row.text for row in rows if isinstance(row, ExampleRow)] == words
