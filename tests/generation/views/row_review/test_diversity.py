"""The diversity of a job's rows: all of them, by label, and next to its seed rows."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from apps.batch.models import Batch, BatchStatus, ItemStatus
from apps.generation.job_request import JobRequest
from apps.generation.models import Job
from apps.generation.recipe.parse import parse
from apps.generation.services import create_job
from apps.generation.views.row_review import diversity
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from tests.generation.conftest import finish, new_job

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("_closed_connections"),
]


def accept(job: Job, count: int, **fields: str) -> None:
    for index in range(count):
        output = {"text": f"Row number {index} of its kind.", **fields}
        output |= {"label": "positive"} if index < 6 else {"label": "negative"}
        finish(job, index, ItemStatus.ACCEPTED, output=output, fingerprint=f"{index}")
    Batch.objects.update(status=BatchStatus.DONE)


async def lines_of(client: AsyncClient, job: Job) -> list[tuple[str, int]]:
    answer: Any = await client.get(f"/generate/{job.pk}/diversity/")
    return [(name, figures.texts) for name, figures in answer.context["lines"]]


async def test_labels_with_enough_rows_have_a_line(
    async_browser: AsyncClient, alice: User, server: Server
) -> None:
    job = await in_db(new_job, alice, server)
    await in_db(accept, job, 10)  # four negative rows are too few
    assert await lines_of(async_browser, job) == [("all rows", 10), ("positive", 6)]


async def test_seed_rows_are_compared_with_as_many_rows(
    async_browser: AsyncClient, alice: User, server: Server
) -> None:
    columns = [
        {"name": "like", "kind": "seed", "rows": ["A seed.", "Another seed.", "A third."]},
        {"name": "text", "kind": "text", "prompt": "Write one like {{ like }}."},
    ]
    recipe = parse({"columns": columns})
    job = await in_db(
        lambda: create_job(
            JobRequest(name="S", rows=9, seed=1, recipe=recipe), owner=alice, server=server
        )
    )
    await in_db(accept, job, 9)
    lines = await lines_of(async_browser, job)
    assert lines == [("all rows", 9), ("First 3 rows", 3), ("3 seed rows", 3)]


async def test_many_rows_have_a_course(
    async_browser: AsyncClient, alice: User, server: Server
) -> None:
    job = await in_db(new_job, alice, server, 20)
    await in_db(accept, job, 20)
    answer: Any = await async_browser.get(f"/generate/{job.pk}/diversity/")
    points = [point.split(",") for point in answer.context["course"].split()]
    assert [float(x) for x, _ in points] == pytest.approx([0, 100 / 3, 200 / 3, 100], abs=0.1)
    assert all(1 <= float(y) <= 23 for _, y in points)
    assert "<polyline" in answer.content.decode()


async def test_long_rows_are_drawn_by_chance(
    async_browser: AsyncClient, alice: User, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await in_db(new_job, alice, server)
    await in_db(accept, job, 10)
    address = f"/generate/{job.pk}/diversity/"
    assert "Based on all accepted rows" in (await async_browser.get(address)).content.decode()
    monkeypatch.setattr(diversity, "MOST_CHARACTERS", 200)
    page = (await async_browser.get(address)).content.decode()
    assert "Based on 5 of 10 accepted rows, drawn at random." in page


async def test_diversity_is_read_only_and_for_its_owner(
    async_browser: AsyncClient, job: Job, bob: User
) -> None:
    address = f"/generate/{job.pk}/diversity/"
    assert (await async_browser.post(address)).status_code == 405
    other = AsyncClient()
    await other.aforce_login(bob)
    assert (await other.get(address)).status_code == 404
