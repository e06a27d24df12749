"""Files that unpack to far more than they are: refused, and what is read is read with limits."""

import io
import resource
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps import files
from apps.datasets.models import Upload
from apps.files import ColumnMapping, FormatError
from apps.files.readers import sandboxed

pytestmark = pytest.mark.django_db

SHEET = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    '<row r="1"><c r="A1" t="inlineStr"><is><t>text</t></is></c></row>'
    '<row r="2"><c r="A2" t="inlineStr"><is><t>{}</t></is></c></row></sheetData></worksheet>'
)


@pytest.fixture(autouse=True)
def _here_it_costs_little() -> Iterator[None]:
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    assert peak < 60, f"{peak:.0f} MB"


def one_cell(size: int) -> bytes:
    """A workbook with one inline cell of so many characters."""
    book = io.BytesIO()
    openpyxl.Workbook().save(book)
    packed_file = io.BytesIO()
    with (
        zipfile.ZipFile(book) as old,
        zipfile.ZipFile(packed_file, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for part in old.namelist():
            if "sheet1" not in part:
                new.writestr(part, old.read(part))
        before, after = SHEET.split("{}")
        with new.open("xl/worksheets/sheet1.xml", "w") as sheet:
            sheet.write(before.encode())
            for _ in range(size >> 20):
                sheet.write(b"x" * (1 << 20))
            sheet.write(after.encode())
    return packed_file.getvalue()


def dictionary_of(size: int, entries: int) -> bytes:
    """A Parquet file of a few kilobytes with so many texts of so many characters."""
    out = io.BytesIO()
    texts = pa.array(["x" * size] * entries).dictionary_encode()
    table = pa.table({"text": texts, "label": ["a"] * entries})
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()


BOMBS: dict[str, tuple[str, Any]] = {
    "an Excel cell of 40 MB": ("bomb.xlsx", lambda: one_cell(40 << 20)),
    "a Parquet text of 40 MB": ("bomb.parquet", lambda: dictionary_of(40 << 20, 3)),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_on_every_way_in(alice: User, api: Client, bomb: str) -> None:
    name, make = BOMBS[bomb]
    content = make()
    assert len(content) < 100_000
    tracemalloc.reset_peak()
    answer = api.post("/api/v1/datasets", {"file": SimpleUploadedFile(name, content)})
    assert answer.status_code == 422
    assert "too much to read safely" in answer.json()["detail"]
    client = Client()
    client.force_login(alice)
    page = client.post("/datasets/new/", {"file": SimpleUploadedFile(name, content)})
    assert page.status_code == 422
    assert "too much to read safely" in page.content.decode()
    assert not Upload.objects.exists()


def test_what_takes_more_memory_than_it_may_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxed, "MEMORY_BYTES", 192 << 20)
    path = tmp_path / "a.xlsx"
    path.write_bytes(one_cell(31 << 20))  # small enough to be tried
    largest_before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # of other tests
    with pytest.raises(FormatError, match="more than 192 MB of memory"):
        files.detect_layout(path)
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert largest <= max(1_100 * 2**10, largest_before)


def test_what_takes_more_time_than_it_may_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxed, "DETECT_SECONDS", 0)
    path = tmp_path / "a.xlsx"
    path.write_bytes(one_cell(1 << 20))
    with pytest.raises(FormatError, match="or 0 s to read"):
        files.detect_layout(path)


def test_a_zip_that_is_no_workbook(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "text,label\n")
    with pytest.raises(FormatError, match="This is a ZIP file"):
        files.detect_layout(path)


@pytest.mark.parametrize("name", ["a.xlsx", "a.XLSX", "a.parquet"])
def test_text_under_another_name_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "upload"
    path.write_text("just some text\n")
    with pytest.raises(FormatError, match="The name ends in"):
        files.detect_layout(path, name=name)


def test_a_line_of_a_million_objects_is_not_built(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n{"text": [' + "{}," * 1_200_000 + "{}]}\n")
    rows = list(
        files.read_checked_rows(path, files.detect_layout(path), ColumnMapping("text", None))
    )
    assert isinstance(rows[1], files.RejectedRow)
    assert "more than 500,000 values" in rows[1].reason


def test_a_sheet_over_the_api(api: Client) -> None:
    book = openpyxl.Workbook()
    notes, data = book.active, book.create_sheet("Data")
    assert notes is not None
    notes.append(["read", "me"])
    for row in (["text", "label"], ["hello", "a"], ["bye", "b"]):
        data.append(row)
    out = io.BytesIO()
    book.save(out)
    file = SimpleUploadedFile("a.xlsx", out.getvalue())
    made = api.post("/api/v1/datasets", {"file": file, "sheet": "Data"}).json()
    assert made["labels"] == {"a": 1, "b": 1}
    file.seek(0)
    answer = api.post("/api/v1/datasets", {"file": file, "sheet": "Daten"})
    assert answer.status_code == 422
    assert "No sheet “Daten”. Available sheets: “Sheet”, “Data”." in answer.json()["detail"]
