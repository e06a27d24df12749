"""Several rows judged, taken back or exported at once."""

import json
from typing import Any

import pytest
from django.test import AsyncClient, Client

from apps.batch.models import Item
from apps.generation.models import Job
from tests.generation.conftest import body_of

HTMX = {"HX-Request": "true"}


def judge(client: Client, job: Job, action: str, **form: Any) -> Any:
    address = f"/generate/{job.pk}/rows/judge/?status=all"
    return client.post(address, {"action": action, **form}, headers=HTMX)


def states(job: Job) -> list[str]:
    items = Item.objects.filter(batch_id=job.batch_id).order_by("index")
    return list(items.values_list("status", flat=True))


def test_rows_are_rejected_and_that_is_undone(browser: Client, job: Job) -> None:
    before = states(job)
    answer = judge(browser, job, "reject", index=["1", "3", "5", "8", "x", "99"])
    assert answer.context["notice"] == "2 rows rejected."  # the others were not accepted
    assert states(job) == [*("accepted", "rejected") * 2, *before[4:]]
    answer = judge(browser, job, "undo", before=answer.context["undo"])
    assert answer.context["notice"] == "2 rows restored."
    assert states(job) == before


def test_rows_are_accepted_and_a_refusal_is_explained(browser: Client, job: Job) -> None:
    answer = judge(browser, job, "accept", index=["0", "5"])
    assert answer.context["notice"] == "1 row accepted."
    [problem] = answer.context["problems"]
    assert problem.startswith("Row 6: This row cannot be restored.")
    assert Item.objects.get(batch_id=job.batch_id, index=0).reviewed


def test_the_table_keeps_its_filter(browser: Client, job: Job) -> None:
    address = f"/generate/{job.pk}/rows/judge/?status=accepted"
    answer: Any = browser.post(address, {"action": "reject", "index": "0"}, headers=HTMX)
    assert [row.item.index for row in answer.context["table"]] == [4, 3, 2, 1]
    plain = browser.post(address, {"action": "reject", "index": "1"})
    assert plain["location"] == f"/generate/{job.pk}/rows/?status=accepted"


def test_undo_takes_no_foreign_token(browser: Client, job: Job) -> None:
    before = states(job)
    assert judge(browser, job, "undo", before=["x", ""]).context["notice"] == "0 rows restored."
    assert states(job) == before


def test_an_unknown_action_and_someone_elses_job(
    browser: Client, bobs_browser: Client, job: Job
) -> None:
    assert judge(browser, job, "x", index="0").status_code == 404
    assert judge(bobs_browser, job, "reject", index="0").status_code == 404
    assert bobs_browser.post(f"/generate/{job.pk}/rows/export/").status_code == 404


@pytest.mark.django_db(transaction=True)
async def test_the_chosen_rows_are_exported(async_browser: AsyncClient, job: Job) -> None:
    address = f"/generate/{job.pk}/rows/export/"
    answer = await async_browser.post(address, {"index": ["1", "4", "5"]})
    rows = [json.loads(line) for line in (await body_of(answer)).splitlines()]
    assert [(row["row"], row["text"]) for row in rows] == [(2, "Text 1."), (5, "Text 4.")]
