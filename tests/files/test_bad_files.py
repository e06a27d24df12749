"""Bad files over the API: each is told clearly, leaves nothing, and costs little.

Large ones are built sparse or compressed, as an attacker would.
"""

import gzip
import io
import json
import tracemalloc
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.contrib.auth.models import User
from django.core.files.base import File
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import get_resolver
from pytest_django import Settings

from apps import files
from apps.datasets import services
from apps.datasets.imports import importing
from apps.datasets.models import Dataset, Example, Rejection, Upload
from apps.files import ColumnMapping, FormatError
from apps.files.readers import excel_workbook
from tests.cpu_time import bounded_cpu

pytestmark = pytest.mark.django_db

MEGABYTES = 40


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with bounded_cpu():
        yield


@pytest.fixture
def little_memory() -> Iterator[None]:
    get_resolver().url_patterns  # noqa: B018 - imports every view: not what is measured
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    assert peak < MEGABYTES, f"{peak:.0f} MB"


def send(api: Client, content: bytes, name: str = "data.csv") -> Any:
    return api.post("/api/v1/datasets", {"file": SimpleUploadedFile(name, content)})


def refused(api: Client, settings: Settings, content: bytes, name: str = "data.csv") -> str:
    """The message, after making sure that nothing is left."""
    answer = send(api, content, name)
    assert answer.status_code == 422, answer.content[:300]
    for model in (Dataset, Example, Rejection, Upload):
        assert not model.objects.exists()
    folder = Path(settings.UPLOADS_DIR)
    assert not folder.exists() or list(folder.iterdir()) == []
    return str(answer.json()["detail"])


def taken(api: Client, content: bytes, name: str = "data.csv") -> dict[str, Any]:
    answer = send(api, content, name)
    assert answer.status_code == 201, answer.content[:300]
    return dict(answer.json())


def reasons(made: dict[str, Any]) -> dict[int, str]:
    return {row["row"]: row["reason"] for row in made["rejected"]}


# --- Refused as a whole -------------------------------------------------------


def test_only_a_header(api: Client, settings: Settings) -> None:
    assert refused(api, settings, b"text,label\n") == "No rows below the header."


@pytest.mark.parametrize("content", [b" \n\r\n \n", b"\xef\xbb\xbf", b"\xff\xfe"])
def test_import_refuses_an_empty_file(api: Client, settings: Settings, content: bytes) -> None:
    assert "empty" in refused(api, settings, content)


def test_no_byte_at_all(api: Client, settings: Settings) -> None:
    assert send(api, b"").status_code == 422
    assert not Upload.objects.exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (bytes(range(256)) * 400, "not a text file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(200), "not a text file"),
        (b"%PDF-1.7\n", "a PDF"),
        (b"\xd0\xcf\x11\xe0" + bytes(600), "old Excel"),
    ],
)
def test_binary(api: Client, settings: Settings, content: bytes, says: str) -> None:
    assert says in refused(api, settings, content)


def test_a_million_columns(api: Client, settings: Settings) -> None:
    row = b",".join([b"x"] * 1_000_000)
    assert "1,000,000 columns" in refused(api, settings, row + b"\n" + row + b"\n")


def test_a_million_fields(api: Client, settings: Settings) -> None:
    line = json.dumps({f"f{n}": 1 for n in range(100_000)})
    assert "Too many fields" in refused(api, settings, line.encode())


@pytest.mark.usefixtures("little_memory")
def test_a_gzip_bomb_is_not_unpacked(api: Client, settings: Settings) -> None:
    assert "gzip" in refused(api, settings, gzip.compress(bytes(5_000_000)), "data.csv.gz")


@pytest.mark.usefixtures("little_memory")
def test_an_excel_bomb_is_not_unpacked(
    api: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(excel_workbook, "MAX_SHARED_TEXTS", 10 << 20)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        with archive.open("xl/sharedStrings.xml", "w") as part:
            for _ in range(50):
                part.write(bytes(1 << 20))
    assert len(packed.getvalue()) < 70_000
    assert "unpacks to 50 MB" in refused(api, settings, packed.getvalue(), "bomb.xlsx")


def test_an_excel_file_whose_sizes_lie(api: Client, settings: Settings) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>" + " " * 5_000_000)
    honest = (5_000_011).to_bytes(4, "little")
    lying = packed.getvalue().replace(honest, (11).to_bytes(4, "little"))
    assert "cannot be read" in refused(api, settings, lying, "lie.xlsx")


@pytest.mark.usefixtures("little_memory")
def test_entities_that_multiply_are_not_expanded(api: Client, settings: Settings) -> None:
    entities = "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "x" * 10}">' for n in range(9)
    )
    sheet = f'<?xml version="1.0"?><!DOCTYPE w [{entities}]><worksheet><a>&a8;</a></worksheet>'
    book = io.BytesIO()
    workbook = openpyxl.Workbook()
    workbook.save(book)
    packed = io.BytesIO()
    with zipfile.ZipFile(book) as old, zipfile.ZipFile(packed, "w") as new:
        for part in old.namelist():
            new.writestr(part, sheet if "sheet1" in part else old.read(part))
    refused(api, settings, packed.getvalue(), "laughs.xlsx")


def test_a_damaged_parquet_file(api: Client, settings: Settings) -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"text": ["a"], "label": ["b"]}), out)
    assert "damaged" in refused(api, settings, out.getvalue()[:-20], "a.parquet")
    assert "damaged" in refused(api, settings, b"PAR1" + bytes(500) + b"PAR1", "a.parquet")


def test_ten_thousand_labels(api: Client, settings: Settings) -> None:
    rows = "".join(f"text {n},label {n}\n" for n in range(10_000))
    says = refused(api, settings, b"text,label\n" + rows.encode())
    assert "more than 1,000 labels" in says
    assert "Check that the right column is the label." in says


# --- Taken, with what is wrong said row by row ---------------------------------


@pytest.mark.usefixtures("little_memory")
def test_a_huge_cell(tmp_path: Path) -> None:
    """Read in bounded memory; one of a gigabyte takes as much, and 64 times as long."""
    path = tmp_path / "huge.csv"
    with path.open("wb") as file:
        file.write(b"text,label\n" + b"good,a\n" * 10_000 + b'"')
        file.truncate(1 << 24)  # the rest is one sparse line of NULs
        file.seek(0, io.SEEK_END)
        file.write(b'",b\nalso good,b\n')
    layout = files.detect_layout(path)
    rows = list(files.read_checked_rows(path, layout, ColumnMapping("text", "label")))
    bad = [row for row in rows if isinstance(row, files.RejectedRow)]
    assert len(rows) - len(bad) >= 10_000
    assert "4,000,000 characters" in " ".join(row.reason for row in bad)


def test_more_than_an_upload_may_have(alice: User, settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "huge.csv"
    with path.open("wb") as file:
        file.truncate(settings.UPLOAD_LIMIT_BYTES + 1)
    settings.UPLOAD_LIMIT_BYTES = 3 << 20
    with path.open("rb") as file, pytest.raises(services.UploadTooLarge, match="3 MB"):
        services.store_upload(owner=alice, files=[File(file, name="huge.csv")])
    assert list(Path(settings.UPLOADS_DIR).iterdir()) == []


def test_report_tells_that_a_dataset_has_one_label(api: Client) -> None:
    made = taken(api, b"text,label\nhello,a\nbye,a\n")
    report = api.get(f"/api/v1/datasets/{made['id']}/report").json()
    assert report["one_label"]


def test_report_lists_labels_with_one_row(api: Client) -> None:
    made = taken(api, b"text,label\nhello,a\nbye,b\nsee you,c\n")
    report = api.get(f"/api/v1/datasets/{made['id']}/report").json()
    assert report["few"] == [{"label": label, "count": 1} for label in "abc"]
    answer = api.post(f"/api/v1/datasets/{made['id']}/split", {}, content_type="application/json")
    assert answer.status_code == 422
    assert "Each label has only one text" in answer.json()["detail"]


def test_the_wrong_encoding(api: Client) -> None:
    made = taken(api, "text,label\nGrüße aus Köln,größe\ncafé,a\n".encode("cp1252"))
    assert made["labels"] == {"größe": 1, "a": 1}
    assert "Windows-1252" in made["notes"][0]
    made = taken(api, "text,label\nÄÖÜ äöü,a\nß,b\n".encode() + b"caf\xe9,b\n")
    assert "0xE9" in reasons(made)[4]
    for encoding in ("utf-16", "utf-32"):
        made = taken(api, "text,label\nGrüße,größe\n".encode(encoding))
        assert made["labels"] == {"größe": 1}


def test_an_encoding_that_is_said(api: Client) -> None:
    content = "text,label\nŁódź,a\nplain,b\n".encode("iso-8859-2")
    file = SimpleUploadedFile("data.csv", content)
    made = api.post("/api/v1/datasets", {"file": file, "encoding": "iso-8859-2"}).json()
    rows = api.get(f"/api/v1/datasets/{made['id']}/examples").json()["items"]
    assert {row["text"] for row in rows} == {"Łódź", "plain"}
    file.seek(0)
    answer = api.post("/api/v1/datasets", {"file": file, "encoding": "klingon"})
    assert answer.status_code == 422
    assert "Unsupported encoding “klingon”" in answer.json()["detail"]


def test_ragged_rows(api: Client) -> None:
    made = taken(api, b"text,label,x\ngood,a,1\nshort\nlong,a,1,2,3\nfine,b\n\n,,\n")
    assert (made["rows"], sorted(reasons(made))) == (2, [3, 4, 7])
    assert "only 1 of 3 columns" in reasons(made)[3]
    assert "5 cells" in reasons(made)[4]


def test_nul_bytes(api: Client) -> None:
    made = taken(api, b"text,label\ngood,a\nb\0d,b\nbad,c\0\nfine,b\n")
    assert made["labels"] == {"a": 1, "b": 1}
    assert set(reasons(made).values()) == {"The text contains a NUL character."}


def test_labels_that_are_numbers(api: Client) -> None:
    made = taken(api, b"text,label\nhello,0\nbye,1\nsee you,10\n")
    assert made["labels"] == {"0": 1, "1": 1, "10": 1}
    assert api.get(f"/api/v1/datasets/{made['id']}/report").json()["numbers"]
    lines = b'{"text": "a", "label": 1}\n{"text": "b", "label": 1.0}\n{"text": "c", "label": true}'
    assert taken(api, lines, "x.jsonl")["labels"] == {"1": 2, "true": 1}


def test_nested_json(api: Client) -> None:
    lines = [
        '{"text": "good", "label": "a", "meta": {"source": {"id": [1, 2]}}}',
        '{"text": {"value": "nested"}, "label": "a"}',
        '{"text": "many", "label": ["a", "b"]}',
        '{"text": "deep", "label": ' + "[" * 50_000,
    ]
    made = taken(api, "\n".join(lines).encode(), "nested.jsonl")
    assert made["rows"] == 1
    assert made["columns"] == ["meta"]
    assert "list or an object" in reasons(made)[2]
    assert "The value is a list of 2, not a text" in reasons(made)[3]
    assert "not JSON" in reasons(made)[4]
    rows = api.get(f"/api/v1/datasets/{made['id']}/examples").json()["items"]
    assert rows[0]["meta"] == {"meta": '{"source": {"id": [1, 2]}}'}


def test_an_excel_file_with_formulas(api: Client) -> None:
    """Values that Excel saved are taken; a formula nobody computed is told, not guessed."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (["text", "label"], ["good", "a"], ["=A2&1", "a"], ["#N/A", "a"], ["fine", 7]):
        sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    made = taken(api, out.getvalue(), "formulas.xlsx")
    assert made["labels"] == {"a": 1, "7": 1}
    assert "formula has no saved value" in reasons(made)[3]
    assert "Excel error: #N/A" in reasons(made)[4]
    assert "saved values" in made["notes"][0]


def test_a_formula_with_its_saved_value(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["text", "label"])
    sheet.append(["=1+1", "a"])
    plain, saved = tmp_path / "a.xlsx", tmp_path / "b.xlsx"
    book.save(plain)
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(saved, "w") as new:
        for part in old.namelist():
            content = old.read(part)
            if "sheet1" in part:
                content = content.replace(b"<f>1+1</f><v></v>", b"<f>1+1</f><v>2</v>")
                content = content.replace(b"<f>1+1</f><v />", b"<f>1+1</f><v>2</v>")
                assert b"<v>2</v>" in content
            new.writestr(part, content)
    layout = files.detect_layout(saved)
    (row,) = files.read_checked_rows(saved, layout, ColumnMapping("text", "label"))
    assert isinstance(row, files.ExampleRow)
    assert (row.text, layout.formulas) == ("2", True)


def test_an_excel_row_at_the_far_end(tmp_path: Path) -> None:
    """A cell in the last row and column of the sheet does not make the reader fill the rest."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["text", "label"])
    sheet.append(["hello", "a"])
    sheet.cell(row=100_000, column=16_384, value="x")
    path = tmp_path / "far.xlsx"
    book.save(path)
    with path.open("rb") as file:
        assert len(file.read()) < 20_000
    rows = list(
        files.read_checked_rows(path, files.detect_layout(path), ColumnMapping("text", "label"))
    )
    assert [type(row) for row in rows] == [files.ExampleRow]


def test_a_parquet_cell_too_long_and_one_nested(api: Client) -> None:
    table = pa.table(
        {
            "text": ["good", "x" * 1_500_000, None, "b\0d", "fine"],
            "label": pa.array([1.0, 2.0, 1.0, 1.0, None]),
            "tags": [["a"], [], None, ["b"], ["c"]],
        }
    )
    out = io.BytesIO()
    pq.write_table(table, out)
    made = taken(api, out.getvalue(), "a.parquet")
    assert made["labels"] == {"1": 1}
    said = reasons(made)
    assert "1,000,000 characters" in said[2]
    assert said[3] == "The text is empty."
    assert "NUL" in said[4]
    assert said[5] == "The label is empty."


@pytest.mark.usefixtures("little_memory")
def test_a_repeated_parquet_cell_is_unpacked_once(tmp_path: Path) -> None:
    """A dictionary of one megabyte cell that 300,000 rows point to: 300 GB when written out."""
    path = tmp_path / "bomb.parquet"
    cell = pa.array(["x" * 1_500_000])
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), cell)
    labels = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), pa.array(["a"]))
    pq.write_table(pa.table({"text": texts, "label": labels}), path)
    assert path.stat().st_size < 1_000_000
    layout = files.detect_layout(path)
    rows = list(
        islice(files.read_checked_rows(path, layout, ColumnMapping("text", "label")), 3_000)
    )
    assert all(isinstance(row, files.RejectedRow) for row in rows)


def test_a_wrong_mapping_says_which_columns_there_are(alice: User, tmp_path: Path) -> None:
    upload = services.store_upload(
        owner=alice, files=[SimpleUploadedFile("a.csv", b"text,label\na,b\n")]
    )
    for mapping in (
        ColumnMapping("nope", "label"),
        ColumnMapping("text", "text"),
        ColumnMapping("text", "label", "label"),
        ColumnMapping("text", None, second_label="label"),
        ColumnMapping("text", "label", second_label="label"),
    ):
        with pytest.raises(FormatError):
            importing.import_upload(upload, services.ImportOptions("x", mapping))
    assert not Dataset.objects.exists()
