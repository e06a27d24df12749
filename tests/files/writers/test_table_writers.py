"""All writers: one interface, rows in pieces, and nothing lost."""

import io
import json
import tempfile
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps import files
from apps.files import ColumnMapping, ExampleRow, JsonlWriter, ParquetWriter, create_writer

RECORDS = [
    {"text": "hello", "label": "a", "split": "train", "id": "1"},
    {"text": "=1+1\nü", "label": "b", "id": "=2"},
    {"text": "no label", "label": "", "split": "test"},
]
COLUMNS = ["text", "label", "split", "id"]
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=20)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_pieces_join_to_one_file_that_reads_back(tmp_path: Path, form: str) -> None:
    writer = create_writer(form, COLUMNS)
    path = tmp_path / "upload"
    pieces = [writer.header(), writer.encode(RECORDS[:2]), writer.encode(RECORDS[2:])]
    path.write_bytes(b"".join([*pieces, writer.footer()]))
    mapping = ColumnMapping("text", "label", "split", keep_unlabelled=True)
    rows = [
        row
        for row in files.read_checked_rows(path, files.detect_layout(path), mapping)
        if isinstance(row, ExampleRow)
    ]
    assert [(row.text, row.label, row.split) for row in rows] == [
        (record["text"], record["label"], record.get("split")) for record in RECORDS
    ]
    assert [row.meta for row in rows] == [{"id": "1"}, {"id": "=2"}, {}]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_table_without_rows_is_a_whole_file(form: str) -> None:
    writer = create_writer(form, COLUMNS)
    data = writer.header() + writer.footer()
    if form == "parquet":
        assert pq.read_table(io.BytesIO(data)).column_names == COLUMNS
    else:
        assert data.decode("utf-8-sig") == {"csv": '"text",label,split,id\r\n', "jsonl": ""}[form]


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="Use csv, jsonl or parquet"):
        create_writer("xml", COLUMNS)


@given(st.lists(st.dictionaries(st.text(max_size=8), VALUES, max_size=4), max_size=5))
def test_jsonl_is_exact(records: list[dict[str, object]]) -> None:
    data = JsonlWriter().encode(records)
    assert [json.loads(line) for line in data.splitlines()] == records


def test_jsonl_keeps_half_a_surrogate_pair_as_an_escape() -> None:
    data = JsonlWriter().encode([{"text": "a\ud83d"}])
    assert data == b'{"text": "a\\ud83d"}\n'
    assert json.loads(data) == {"text": "a\ud83d"}


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=6))
def test_parquet_is_exact(texts: list[str]) -> None:
    writer = ParquetWriter(["text"])
    data = writer.header() + writer.encode([{"text": text} for text in texts]) + writer.footer()
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(data)
        assert pq.read_table(file.name).to_pydict() == {"text": texts}


def test_parquet_writes_a_row_group_for_each_piece_with_the_types_of_a_schema() -> None:
    schema = pa.schema([("day", pa.date32()), ("count", pa.int64())])
    writer = ParquetWriter(
        schema=schema,
        column=lambda values, kind: pa.array(
            [date.fromisoformat(v) if kind == pa.date32() and v else v for v in values], kind
        ),
    )
    pieces = [writer.encode([{"day": "2026-11-21", "count": 2}]), writer.encode([{"count": 3}])]
    written = pq.ParquetFile(io.BytesIO(b"".join([*pieces, writer.footer()])))
    assert written.metadata.num_row_groups == 2
    assert written.read().to_pydict() == {"day": [date(2026, 11, 21), None], "count": [2, 3]}
