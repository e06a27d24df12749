"""Rows of a job over HTTP: listed by status and reason, restored, rejected, edited."""

from typing import Any

import pytest
from django.test import Client

from apps.batch.models import ItemStatus
from apps.generation.models import Job
from tests.generation.conftest import finish, item_of


def rows(client: Client, job: Job, query: str = "") -> list[dict[str, Any]]:
    answer = client.get(f"/api/v1/jobs/{job.pk}/rows?{query}")
    assert answer.status_code == 200
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


@pytest.mark.parametrize(
    ("query", "indices"),
    [
        ("", list(range(10))),
        ("status=accepted", [0, 1, 2, 3, 4]),
        ("status=failed&code=stalled", [6]),
        ("code=length", [5]),
        ("code=nothing", []),
        ("limit=3", [0, 1, 2]),
    ],
)
def test_rows_by_status_and_reason(api: Client, job: Job, query: str, indices: list[int]) -> None:
    assert [row["index"] for row in rows(api, job, query)] == indices


def test_an_unknown_status_is_named_with_those_that_exist(api: Client, job: Job) -> None:
    answer = api.get(f"/api/v1/jobs/{job.pk}/rows?status=good")
    assert answer.status_code == 422
    known = "Use pending, running, accepted, rejected, failed."
    assert answer.json()["detail"] == f"Unknown status 'good'. {known}"


def test_an_accepted_row_in_full(api: Client, job: Job) -> None:
    row = rows(api, job)[0]
    assert (row["number"], row["replaces"], row["attempts"]) == (1, 0, 1)
    assert row["usage"] == {"prompt_tokens": 60, "cached_tokens": 50, "completion_tokens": 20}
    assert [message["role"] for message in row["prompt"]] == ["system", "user"]
    assert row["prompt"][1]["content"] == "Write it."
    assert row["raw"] == '{"text": "Text 0.", "label": "positive"}'
    assert (row["edited"], row["reviewed"], row["reason"]) == (None, False, "")


def test_a_row_that_was_not_generated(api: Client, job: Job) -> None:
    row = rows(api, job, "status=pending")[0]
    assert (row["prompt"], row["raw"], row["output"]) == ([], "", None)


def test_a_row_that_replaces_another(api: Client, job: Job) -> None:
    finish(job, 9, ItemStatus.ACCEPTED, input={"for": 5}, output={"text": "A."})
    assert rows(api, job)[9]["replaces"] == 5


def test_a_rejected_row_is_restored_once(api: Client, job: Job) -> None:
    address = f"/api/v1/jobs/{job.pk}/rows/1"
    assert api.post(f"{address}/reject").json()["reason"] == "Rejected by you."
    answer = api.post(f"{address}/reject")
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")
    assert api.post(f"{address}/restore").json()["status"] == "accepted"
    answer = api.post(f"{address}/restore")
    assert answer.status_code == 409
    assert "Only rejected rows can be restored." in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("get", "0/reject"), ("get", "0/restore"), ("post", "0"), ("delete", "0")],
)
def test_the_wrong_verb(api: Client, job: Job, method: str, path: str) -> None:
    answer = getattr(api, method)(f"/api/v1/jobs/{job.pk}/rows/{path}")
    assert answer.status_code in {404, 405}
    assert item_of(job, 0).status == ItemStatus.ACCEPTED


def test_a_row_without_output_cannot_be_edited(api: Client, job: Job) -> None:
    address = f"/api/v1/jobs/{job.pk}/rows/9"
    answer = api.patch(address, {"fields": {"text": "A."}}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")
    assert answer.json()["detail"] == "This row has no fields to edit."
