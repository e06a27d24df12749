"""Accepted rows as files: of which types, and what a spreadsheet makes of them."""

import csv
import io
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient

from apps import files as dataset_files
from apps.batch.models import Item, ItemStatus
from apps.generation.exports.export import export
from apps.generation.exports.formats import Format
from apps.generation.job_request import JobRequest
from apps.generation.models import Job
from apps.generation.recipe.parse import parse
from apps.generation.services import create_job
from apps.servers.models import Server
from tests.generation.conftest import finish

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["title", "stars", "share", "tags", "place"],
    "properties": {
        "title": {"type": "string"},
        "stars": {"type": "integer"},
        "share": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {
            "type": "object",
            "required": ["city"],
            "properties": {"city": {"type": "string"}, "floor": {"type": "integer"}},
        },
        "level": {"enum": [1, 2]},
        "=cmd": {"type": "boolean"},
    },
}
RECIPE: dict[str, Any] = {
    "columns": [
        {"name": "day", "kind": "date", "from": "2026-01-01", "to": "2026-01-31"},
        {
            "name": "at",
            "kind": "date",
            "from": "2026-01-01",
            "to": "2026-01-02",
            "time": True,
        },
        {"name": "half", "kind": "number", "min": 0, "max": 1, "decimals": 2},
        {"name": "twice", "kind": "expression", "expression": "half * 2"},
    ],
    "prompt": "Go.",
    "schema": SCHEMA,
}
ROW: dict[str, Any] = {
    "day": "2026-01-31",
    "at": "2026-01-01T10:30+00:00",
    "half": 0.5,
    "twice": 1.0,
    "title": "Zoë",
    "stars": -5,
    "share": 2,
    "tags": ["a", "b"],
    "place": {"city": "Köln"},
    "level": 2,
    "=cmd": True,
}


@pytest.fixture
def job(alice: User, server: Server) -> Job:
    return create_job(
        JobRequest(name="T", rows=2, seed=7, recipe=parse(RECIPE)), owner=alice, server=server
    )


async def file(client: AsyncClient, job: Job, query: str, *outputs: dict[str, Any]) -> bytes:
    def finish_rows() -> None:
        for index, output in enumerate(outputs):
            finish(job, index, ItemStatus.ACCEPTED, output=output)

    await sync_to_async(finish_rows)()
    answer: Any = await client.get(f"/api/v1/jobs/{job.pk}/export?format={query}")
    return b"".join([part async for part in answer.streaming_content])


def rows_of(data: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(io.BytesIO(data)).to_pylist()
    return found


@pytest.mark.django_db(transaction=True)
class TestParquet:
    async def test_a_field_is_of_the_type_it_has(
        self, async_browser: AsyncClient, job: Job
    ) -> None:
        [row] = rows_of(await file(async_browser, job, "parquet", ROW))
        assert row == {
            **ROW,
            "day": date(2026, 1, 31),
            "at": datetime(2026, 1, 1, 10, 30, tzinfo=UTC),
            "share": 2.0,
            "place": {"city": "Köln", "floor": None},
        }

    @pytest.mark.parametrize(
        ("field", "value", "text"),
        [
            ("stars", 12345678901234567890, "12345678901234567890"),
            ("share", 10**400, str(10**400)),
            ("day", "some day", "some day"),
            ("tags", ["a", 1], '["a", 1]'),
            ("place", {"city": "X", "floor": 10**30}, None),
            ("twice", "no number", "no number"),
        ],
    )
    async def test_what_does_not_fit_makes_its_column_text(
        self, async_browser: AsyncClient, job: Job, field: str, value: Any, text: str | None
    ) -> None:
        rows = rows_of(await file(async_browser, job, "parquet", ROW, {**ROW, field: value}))
        assert rows[1][field] == (text or json.dumps(value, ensure_ascii=False))
        assert isinstance(rows[0][field], str)
        assert rows[0]["title"] == rows[1]["title"] == "Zoë"

    async def test_what_comes_during_the_download_is_never_an_empty_cell(self, job: Job) -> None:
        """A later row waits for the next download; one that was changed breaks this one off."""
        accept = sync_to_async(finish)
        await accept(job, 0, ItemStatus.ACCEPTED, output=ROW)
        begun = export(job, Format.PARQUET, piece_rows=1)
        data = await anext(begun)
        await accept(job, 1, ItemStatus.ACCEPTED, output=ROW | {"stars": 10**30})
        data += b"".join([piece async for piece in begun])
        assert [row["stars"] for row in rows_of(data)] == [-5]

        begun = export(job, Format.PARQUET, piece_rows=1)
        await anext(begun)
        await accept(job, 0, ItemStatus.ACCEPTED, output=ROW | {"day": "some day"})
        with pytest.raises(ValueError, match="“some day” is not of the type date32"):
            [piece async for piece in begun]

    async def test_a_field_that_was_left_empty(self, async_browser: AsyncClient, job: Job) -> None:
        rows = rows_of(await file(async_browser, job, "parquet", ROW | {"level": None}))
        assert rows[0]["level"] is None


@pytest.mark.django_db(transaction=True)
async def test_a_spreadsheet_reads_umlauts_numbers_and_no_formula(
    async_browser: AsyncClient, job: Job
) -> None:
    data = await file(async_browser, job, "csv", ROW | {"title": "=1+1"}, ROW | {"title": "-5.5"})
    assert data.startswith(b"\xef\xbb\xbf")
    header, first, second = csv.reader(io.StringIO(data.decode("utf-8-sig")))
    assert "'=cmd" in header
    assert "=cmd" not in header
    rows = [dict(zip(header, cells, strict=True)) for cells in (first, second)]
    assert [row["title"] for row in rows] == ["'=1+1", "-5.5"]
    assert {row["stars"] for row in rows} == {"-5"}


@pytest.mark.django_db(transaction=True)
async def test_a_dataset_made_of_the_csv_has_no_apostrophes(
    async_browser: AsyncClient, job: Job, tmp_path: Path
) -> None:
    data = await file(async_browser, job, "csv", ROW | {"title": "=1+1"})
    (tmp_path / "a.csv").write_bytes(data)
    layout = dataset_files.detect_layout(tmp_path / "a.csv", name="a.csv")
    [row] = dataset_files.read_checked_rows(
        tmp_path / "a.csv", layout, dataset_files.ColumnMapping("title", "level")
    )
    assert isinstance(row, dataset_files.ExampleRow)
    assert row.text == "=1+1"


@pytest.mark.django_db(transaction=True)
async def test_rows_with_their_numbers(async_browser: AsyncClient, job: Job) -> None:
    lines = (await file(async_browser, job, "jsonl&numbered=1", ROW, ROW)).splitlines()
    assert [json.loads(line)["row"] for line in lines] == [1, 2]
    [first, _] = rows_of(await file(async_browser, job, "parquet&numbered=1", ROW, ROW))
    assert next(iter(first.items())) == ("row", 1)
    shown = (await async_browser.get(f"/api/v1/jobs/{job.pk}/rows")).json()["items"]
    assert [(row["index"], row["number"]) for row in shown] == [(0, 1), (1, 2)]
    page = (await async_browser.get(f"/generate/{job.pk}/rows/0/")).content.decode()
    assert "<h1>Row 1</h1>" in page
    assert await Item.objects.acount() == 2
