"""Downloads of a dataset and of its rejected rows."""

import io
import json
from typing import Any

import pyarrow.parquet as pq
import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from apps.datasets import services
from apps.datasets.models import Dataset
from apps.files import ExampleRow, RejectedRow

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def dataset(alice: User) -> Dataset:
    rows = [
        ExampleRow("=1+1", "a", "test", "row 2", {"id": "7"}),
        ExampleRow("two", "b"),
        RejectedRow(4, "text", "The text is empty."),
    ]
    return services.create_dataset(owner=alice, name="Größe", rows=rows, origin="tests")


def download(user: User, path: str) -> tuple[Any, bytes]:
    """Fetch over ASGI, as it is served: the answer comes in pieces."""

    async def get() -> tuple[Any, bytes]:
        client = AsyncClient()
        await client.aforce_login(user)
        answer = await client.get(path)
        if not answer.streaming:
            return answer, answer.content
        return answer, b"".join([piece async for piece in answer.streaming_content])

    return async_to_sync(get)()


def test_csv_makes_formulas_safe(alice: User, dataset: Dataset) -> None:
    answer, content = download(alice, f"/datasets/{dataset.pk}/export/csv/")
    assert answer["Content-Type"].startswith("text/csv")
    assert content.decode("utf-8-sig").splitlines() == [
        '"text",label,split,id',
        "'=1+1,a,test,7",
        "two,b,,",
    ]


def test_jsonl_is_exact(alice: User, dataset: Dataset) -> None:
    _, content = download(alice, f"/datasets/{dataset.pk}/export/jsonl/")
    assert [json.loads(line) for line in content.splitlines()] == [
        {"text": "=1+1", "label": "a", "split": "test", "id": "7"},
        {"text": "two", "label": "b"},
    ]


def test_parquet_has_every_column(alice: User, dataset: Dataset) -> None:
    _, content = download(alice, f"/datasets/{dataset.pk}/export/parquet/")
    table = pq.read_table(io.BytesIO(content))
    assert table.column_names == ["text", "label", "split", "id"]
    assert table["id"].to_pylist() == ["7", None]


def test_the_file_name_is_that_of_the_dataset(alice: User, dataset: Dataset) -> None:
    answer, _ = download(alice, f"/datasets/{dataset.pk}/export/csv/")
    assert "filename*=utf-8''Gr%C3%B6%C3%9Fe.csv" in answer["Content-Disposition"]


def test_rejected_rows_have_their_reason(alice: User, dataset: Dataset) -> None:
    answer, content = download(alice, f"/datasets/{dataset.pk}/rejected/")
    assert "rejected%20rows.csv" in answer["Content-Disposition"]
    assert content.decode("utf-8-sig").splitlines()[1:] == [",4,text,The text is empty."]


def test_an_unknown_format_is_not_there(alice: User, dataset: Dataset) -> None:
    assert download(alice, f"/datasets/{dataset.pk}/export/xml/")[0].status_code == 404


@pytest.mark.parametrize("path", ["export/csv", "rejected"])
def test_someone_elses_rows_are_not_there(bob: User, dataset: Dataset, path: str) -> None:
    assert download(bob, f"/datasets/{dataset.pk}/{path}/")[0].status_code == 404


@pytest.mark.parametrize("path", ["export/csv", "rejected"])
def test_export_pages_refuse_post(browser: Client, dataset: Dataset, path: str) -> None:
    assert browser.post(f"/datasets/{dataset.pk}/{path}/").status_code == 405
