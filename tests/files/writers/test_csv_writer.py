"""CSV for spreadsheets: nothing runs, and reading it again gives what was written."""

import csv
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps import files
from apps.files import ColumnMapping, CsvWriter, ExampleRow, csv_header

CELLS = [
    *("=1+1", "+1", "-1", "@SUM(A1)", "\ttab", "\rcarriage", "\nline", "'=1", "''=1", "'plain"),
    *("plain", "it's", "＝1", 'a "quoted", one', "two\nlines"),
]
# All that a row may hold: no NUL, no half of a surrogate pair, and not white space alone.
TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60
).filter(str.strip)
LABELS = st.sampled_from(["a", "b", "=c", "say “d”", 'e "f", g'])


def written(records: list[dict[str, object]], columns: list[str]) -> bytes:
    writer = CsvWriter(columns)
    return writer.header() + writer.encode(records) + writer.footer()


def cells_of(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def read_back(path: Path) -> list[tuple[str, str]]:
    rows = files.read_checked_rows(
        path, files.detect_layout(path, name="a.csv"), ColumnMapping("text", "label")
    )
    return [(row.text, row.label) for row in rows if isinstance(row, ExampleRow)]


def test_encode_leaves_no_formula_and_a_reader_gets_the_texts_back(tmp_path: Path) -> None:
    records: list[dict[str, object]] = [{"text": cell, "label": "x"} for cell in CELLS]
    path = tmp_path / "upload"
    path.write_bytes(written(records, ["text", "label"]))
    for cells in cells_of(path.read_bytes()):
        assert not [cell for cell in cells if cell.startswith(tuple("=+-@\t\r\n＝"))]
    assert read_back(path) == [(cell, "x") for cell in CELLS]


@given(st.lists(st.tuples(TEXTS, LABELS), min_size=1, max_size=8))
def test_any_table_is_read_back_as_it_was_written(rows: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "upload"
        records: list[dict[str, object]] = [{"text": text, "label": label} for text, label in rows]
        path.write_bytes(written(records, ["text", "label"]))
        assert read_back(path) == rows


def test_numbers_stay_numbers_and_missing_values_are_empty() -> None:
    data = written([{"row": -7, "share": 0.25}, {"row": 8, "text": "-5"}], ["row", "share", "text"])
    assert cells_of(data) == [["row", "share", "text"], ["-7", "0.25", ""], ["8", "", "'-5"]]


def test_plain_numbers_keep_texts_that_are_numbers() -> None:
    writer = CsvWriter(["a", "b", "c"], plain_numbers=True)
    assert writer.encode([{"a": "-5", "b": "-5.25", "c": "-5+1"}]) == b"-5,-5.25,'-5+1\r\n"


def test_what_no_file_can_hold_is_replaced() -> None:
    writer = CsvWriter(["text"])
    assert writer.encode([{"text": "a\0b\ud800c"}]).decode() == "a\ufffdb?c\r\n"


@pytest.mark.parametrize("names", [["message"], ["text", "label"], ["row", 'say "x"', "=cmd"]])
def test_reader_recognises_the_header(tmp_path: Path, names: list[str]) -> None:
    path = tmp_path / "upload"
    records: list[dict[str, object]] = [{**dict.fromkeys(names, "a"), names[0]: "=1"}] * 3
    path.write_bytes(written(records, names))
    layout = files.detect_layout(path, name="a.csv")
    assert (layout.header, layout.escaped) == (True, True)
    assert files.sample_rows(path, layout)[0][0] == "=1"
    assert next(csv.reader([csv_header(names)]))[0] == names[0]
