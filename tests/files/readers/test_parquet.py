"""Parquet files: sizes, names, cells."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from apps.files import FormatError, RejectedRow
from apps.files.readers import parquet


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(columns: Any, **options: Any) -> Path:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table(columns), path, **options)
        return path

    return write


def test_rows_come_in_order_over_row_groups(write: Callable[..., Path]) -> None:
    path = write({"text": [f"t{n}" for n in range(25)], "n": list(range(25))}, row_group_size=10)
    layout = parquet.detect_layout(path)
    assert (layout.columns, layout.estimated_rows) == (("text", "n"), 25)
    records = list(parquet.read_records(path, layout))
    assert records == [(n + 1, {"text": f"t{n}", "n": n}) for n in range(25)]


def test_dictionaries_with_long_entries_are_read_like_texts(write: Callable[..., Path]) -> None:
    long = "x" * (parquet.LONG_ENTRY + 1)
    path = write({"text": pa.array([long, None, "b", long]).dictionary_encode()})
    cells = [cells for _, cells in parquet.read_records(path, parquet.detect_layout(path))]
    assert cells == [{"text": text} for text in (long, None, "b", long)]


def test_bytes_are_read_as_text(write: Callable[..., Path]) -> None:
    path = write({"text": pa.array([b"plain", b"caf\xe9"], pa.binary())})
    cells = [cells for _, cells in parquet.read_records(path, parquet.detect_layout(path))]
    assert cells == [{"text": "plain"}, {"text": "caf\udce9"}]


def test_a_cell_too_long_costs_its_row(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "MAX_CELL", 5)
    path = write({"text": ["short", "too long"], "label": ["a", "b"]})
    records = list(parquet.read_records(path, parquet.detect_layout(path)))
    assert records[0] == (1, {"text": "short", "label": "a"})
    assert records[1] == (2, RejectedRow(2, "text", "More than 5 characters."))


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ("MAX_ROWS", "The file has 3 rows and the limit is 1"),
        ("MAX_COLUMNS", "The file has 2 columns and the limit is 1"),
        ("MAX_CHUNK", "A column of row group 1 unpacks to"),
    ],
)
def test_a_file_over_a_limit_is_refused(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, limit: str, says: str
) -> None:
    monkeypatch.setattr(parquet, limit, 1)
    path = write({"text": ["a", "b", "c"], "label": ["a", "b", "c"]})
    with pytest.raises(FormatError, match=says):
        parquet.detect_layout(path)


def test_columns_whose_names_differ_in_spaces_only_are_refused(
    write: Callable[..., Path],
) -> None:
    with pytest.raises(FormatError, match="Two columns have the same name"):
        parquet.detect_layout(write({"text": ["a"], " text": ["b"]}))


def test_a_damaged_file_is_refused(write: Callable[..., Path]) -> None:
    path = write({"text": ["a"]})
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(FormatError, match="incomplete or damaged"):
        parquet.detect_layout(path)
