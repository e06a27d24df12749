"""Excel, Parquet and plain text as people have them, and datasets written out again."""

import datetime
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from apps import files
from apps.files import ColumnMapping, ExampleRow, FileKind, ReadOptions, RejectedRow

ROWS = [
    ExampleRow("hello", "a", "train", "", {"id": "1", "label": "other"}),
    ExampleRow("=1+1\nü", "b", None, "", {"id": "=2"}),
    ExampleRow("no label", "", "test"),
]


def test_excel(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    notes = book.active
    assert notes is not None
    notes.title = "Empty"
    sheet = book.create_sheet("Data")
    sheet.append([" Text ", "Label", "When", "Ok"])
    sheet.append(["hello", 1, datetime.date(2026, 11, 21), True])
    sheet.append([])
    sheet.append([None, 2.5, None, None])
    sheet.append(["bye", "x", None, False, "too much"])
    path = tmp_path / "upload"  # without an ending, as uploads are kept
    book.save(path)
    layout = files.detect_layout(path)
    assert (layout.kind, layout.sheets, layout.sheet) == (FileKind.EXCEL, ("Empty", "Data"), "Data")
    assert layout.columns == ("Text", "Label", "When", "Ok")
    assert layout.description == "Excel, sheet “Data”, with a header"
    rows = list(files.read_checked_rows(path, layout, ColumnMapping("Text", "Label")))
    assert rows == [
        ExampleRow("hello", "1", None, "row 2", {"When": "2026-11-21 00:00:00", "Ok": "true"}),
        RejectedRow(4, "Text", "The text is empty."),
        RejectedRow(5, "", "The row has more cells than the table has columns (4)."),
    ]
    headless = files.detect_layout(path, options=ReadOptions(header=False, sheet="Data"))
    assert headless.columns == ("column 1", "column 2", "column 3", "column 4", "column 5")


@pytest.mark.parametrize(
    "texts", [pa.array(["hello", "bye"]), pa.array(["hello", "bye"]).dictionary_encode()]
)
def test_parquet(tmp_path: Path, texts: pa.Array) -> None:
    path = tmp_path / "upload"
    pq.write_table(pa.table({"text": texts, " label": [1, 2], "n": [1.5, None]}), path)
    layout = files.detect_layout(path)
    assert layout.columns == ("text", "label", "n")
    assert layout.cleaned_names == 1
    assert files.guess_mapping(layout.columns, files.sample_rows(path, layout)).label == "label"
    rows = list(files.read_checked_rows(path, layout, ColumnMapping("text", "label")))
    assert rows == [
        ExampleRow("hello", "1", None, "row 1", {"n": "1.5"}),
        ExampleRow("bye", "2", None, "row 2"),
    ]
    assert files.estimate_rows(path, layout) == 2


@pytest.mark.parametrize(
    ("name", "content", "kind", "columns"),
    [
        ("a.txt", b"Hello, you\nBye, me\n", FileKind.TEXT, ("text",)),
        (
            *("a.txt", b"ham\tHello, you\nspam\tBye, me\nham\tHi\n", FileKind.CSV),
            ("column 1", "column 2"),
        ),
        ("a.csv", b"text\n\"two\nlines\"\n", FileKind.CSV, ("text",)),
        ("a.txt", b"sentence\nHello\n", FileKind.TEXT, ("sentence",)),
        ("a", b"one word\nor two\n", FileKind.TEXT, ("text",)),
    ],
)  # fmt: skip
def test_plain_text(
    tmp_path: Path, name: str, content: bytes, kind: FileKind, columns: tuple[str, ...]
) -> None:
    path = tmp_path / "upload"
    path.write_bytes(content)
    layout = files.detect_layout(path, name=name)
    assert (layout.kind, layout.columns) == (kind, columns)


def test_what_a_person_says_of_a_file_counts(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    path.write_bytes("Привет, мир;а\n".encode("cp1251"))
    said = ReadOptions(header=False, separator=";", encoding="cp1251")
    layout = files.detect_layout(path, options=said)
    (row,) = files.read_checked_rows(path, layout, ColumnMapping("column 1", "column 2"))
    assert isinstance(row, ExampleRow)
    assert (row.text, row.label) == ("Привет, мир", "а")
    assert files.detect_layout(path, options=ReadOptions(separator="")).kind is FileKind.TEXT


@pytest.mark.parametrize(
    ("name", "split"),
    [("banking77_test.csv", "test"), ("my-train.tsv", "train"), ("dev.jsonl", "validation"),
     ("contest.csv", None), ("latest.csv", None), ("test_train.csv", "train")],
)  # fmt: skip
def test_a_files_name_tells_its_split(name: str, split: str | None) -> None:
    assert files.split_of_file_name(name) == split
