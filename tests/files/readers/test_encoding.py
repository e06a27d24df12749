"""What programs write without saying so: encodings, missing cells, apostrophes, no header."""

import codecs
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from apps import files
from apps.files import ColumnMapping, CsvWriter, ExampleRow, RejectedRow

RUSSIAN = "text,label\n" + "Привет мир,да\nПока мир,нет\n" * 20
WESTERN = "text,label\n" + "Grüße aus Köln,größe\nça été là-bas,élève\n" * 20


def rows_of(path: Path) -> list[ExampleRow | RejectedRow]:
    mapping = ColumnMapping("text", "label")
    return list(files.read_checked_rows(path, files.detect_layout(path), mapping))


def texts(path: Path) -> list[str]:
    layout = files.detect_layout(path)
    rows = files.read_checked_rows(path, layout, files.detect_mapping(path, layout))
    return [row.text for row in rows if isinstance(row, ExampleRow)]


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (RUSSIAN, "cp1251"),
        (WESTERN, "cp1252"),
        ("text,label\nПривет мир,да\nПока,нет\n", "cp1251"),
        ("text,label\nÀ ÉTÉ,a\n", "cp1252"),
        (WESTERN, "utf-16-le"),
        (WESTERN, "utf-16-be"),
        ("text,label\nhello,x\n", "utf-16-le"),
    ],
)
def test_an_encoding_is_found(tmp_path: Path, content: str, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content.encode(encoding))
    layout = files.detect_layout(path)
    assert layout.encoding == encoding
    assert texts(path)[0] == content.split("\n")[1].split(",")[0]


def test_a_cell_that_is_no_number_is_empty(tmp_path: Path) -> None:
    lines = tmp_path / "a.jsonl"
    lines.write_text(
        '{"text": "a", "label": NaN}\n{"text": "b", "label": Infinity}\n'
        '{"text": "c", "label": 1.0}\n{"text": "nan", "label": "nan"}\n'
    )
    table = tmp_path / "a.parquet"
    labels = pa.array([float("nan"), float("-inf"), 1.0, 2.0])
    pq.write_table(pa.table({"text": ["a", "b", "c", "nan"], "label": labels}), table)
    for path, last in ((lines, "nan"), (table, "2")):
        rows = list(
            files.read_checked_rows(path, files.detect_layout(path), ColumnMapping("text", "label"))
        )
        assert [row.label for row in rows if isinstance(row, ExampleRow)] == ["1", last]


def test_apostrophes_of_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label,part\n'-5 degrees' is cold,x,\n\"'@bob hi\",y,\n")
    assert texts(path) == ["'-5 degrees' is cold", "'@bob hi"]
    writer = CsvWriter(["text", "label"])
    written = [{"text": "=1", "label": "a"}, {"text": "'-5", "label": "b"}]
    path.write_bytes((writer.header() + writer.encode(written)).removeprefix(codecs.BOM_UTF8))
    assert "'=1" in path.read_text()
    assert texts(path) == ["=1", "'-5"]
    path.write_text("\ufeff" + path.read_text())  # as it is sent
    assert texts(path) == ["=1", "'-5"]


def test_a_first_row_whose_label_comes_late_is_no_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    labels = [f"intent_{n}" for n in range(150)]
    rows = [f"how is it with number {n},{labels[n % 149 + 1]}" for n in range(1_000)]
    path.write_text("\n".join([f"the very first,{labels[0]}", *rows, f"late,{labels[0]}"]))
    assert not files.detect_layout(path).header


def test_json_numbers_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"text": "a", "label": None}, {"text": "b", "label": 2.0}]))
    rows = list(
        files.read_checked_rows(path, files.detect_layout(path), ColumnMapping("text", "label"))
    )
    assert [row.label for row in rows if isinstance(row, ExampleRow)] == ["2"]
