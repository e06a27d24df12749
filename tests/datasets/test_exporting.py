"""A dataset as a file: what goes out comes in again as it was."""

import json
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from apps import files
from apps.datasets import services
from apps.datasets.models import Dataset
from apps.files import ColumnMapping, ExampleRow, RejectedRow

pytestmark = pytest.mark.django_db(transaction=True)

ROWS = [
    ExampleRow("hello", "a", "train", "row 2", {"id": "1", "label": "other"}),
    ExampleRow("=1+1\nü", "b", None, "row 3", {"id": "=2"}),
    ExampleRow("no label", "", "test", "row 4"),
]


@pytest.fixture
def dataset(alice: User) -> Dataset:
    given = [*ROWS, RejectedRow(5, "text", "=The text is empty.")]
    return services.create_dataset(
        owner=alice, name="Some", rows=given, origin="tests", unlabelled=True
    )


async def _joined(dataset: Dataset, form: str) -> bytes:
    return b"".join([piece async for piece in services.export(dataset, form=form)])


def exported(dataset: Dataset, form: str) -> bytes:
    return async_to_sync(_joined)(dataset, form)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_export_reads_back_as_it_was(dataset: Dataset, tmp_path: Path, form: str) -> None:
    path = tmp_path / "upload"
    path.write_bytes(exported(dataset, form))
    mapping = ColumnMapping("text", "label", "split", keep_unlabelled=True)
    rows = list(files.read_checked_rows(path, files.detect_layout(path), mapping))
    assert [(r.text, r.label, r.split) for r in rows if isinstance(r, ExampleRow)] == [
        (row.text, row.label, row.split) for row in ROWS
    ]
    assert [r.meta for r in rows if isinstance(r, ExampleRow)] == [
        {"id": "1", "label (extra)": "other"},
        {"id": "=2"},
        {},
    ]


def test_export_of_jsonl_has_no_key_without_a_value(dataset: Dataset) -> None:
    lines = [json.loads(line) for line in exported(dataset, "jsonl").splitlines()]
    assert lines[1] == {"text": "=1+1\nü", "label": "b", "id": "=2"}
    assert lines[2] == {"text": "no label", "label": "", "split": "test"}


async def _rejections(dataset: Dataset) -> bytes:
    return b"".join([piece async for piece in services.export_rejections(dataset)])


def test_export_rejections_lists_every_row_with_its_reason(dataset: Dataset) -> None:
    written = async_to_sync(_rejections)(dataset).decode("utf-8-sig")
    assert written.splitlines() == ['"file",row,column,reason', ",5,text,'=The text is empty."]
