"""Actions on a job over HTTP: who may, in which state, and what comes back."""

from typing import Any

import pytest
from django.test import Client

from apps.batch.models import Batch, Item, ItemStatus
from apps.generation.models import Job
from apps.servers.models import Server

ACTIONS = ["pause", "resume", "cancel", "retry-failed", "add-rows", "duplicate"]


def post(client: Client, job: Job, action: str, body: Any = None) -> Any:
    address = f"/api/v1/jobs/{job.pk}/{action}"
    return client.post(address, body or {"rows": 2}, content_type="application/json")


@pytest.mark.parametrize("action", ACTIONS)
def test_actions_are_posted_with_a_key(client: Client, api: Client, job: Job, action: str) -> None:
    assert api.get(f"/api/v1/jobs/{job.pk}/{action}").status_code == 405
    assert post(client, job, action).status_code == 401
    assert Batch.objects.get().status == "running"


@pytest.mark.parametrize(
    ("before", "action"),
    [
        ("done", "pause"),
        ("running", "resume"),
        ("done", "cancel"),
        ("cancelled", "retry-failed"),
        ("cancelled", "add-rows"),
    ],
)
def test_the_wrong_state_is_a_conflict(api: Client, job: Job, before: str, action: str) -> None:
    Batch.objects.update(status=before)
    answer = post(api, job, action)
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")
    assert answer.json()["detail"].endswith(".")
    assert Batch.objects.get().status == before


def test_a_paused_job_is_resumed(api: Client, job: Job) -> None:
    answer = post(api, job, "pause")
    assert (answer.status_code, answer.json()) == (202, {"id": job.pk, "status": "paused"})
    assert post(api, job, "resume").status_code == 202
    assert Batch.objects.get().status in {"queued", "running"}


def test_failed_rows_are_retried(api: Client, job: Job) -> None:
    assert post(api, job, "retry-failed").status_code == 202
    assert Item.objects.get(index=6).status == ItemStatus.PENDING


@pytest.mark.parametrize("rows", [0, -1, 100_001, "x", None])
def test_a_wrong_number_of_rows(api: Client, job: Job, rows: Any) -> None:
    assert post(api, job, "add-rows", {"rows": rows}).status_code == 422
    assert Batch.objects.get().total == 10


def test_a_duplicate_is_another_job(api: Client, job: Job) -> None:
    answer = post(api, job, "duplicate")
    assert answer.status_code == 202
    copy = api.get(f"/api/v1/jobs/{answer.json()['id']}").json()
    assert (copy["name"], copy["rows"], copy["recipe"]) == ("Reviews (again)", 10, job.recipe)
    assert copy["counts"]["pending"] == 10


def test_a_job_without_its_server_has_no_duplicate(api: Client, job: Job, server: Server) -> None:
    server.delete()
    answer = post(api, job, "duplicate")
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")
    assert "was removed" in answer.json()["detail"]


def test_a_job_whose_seed_rows_are_gone_has_no_duplicate(api: Client, job: Job) -> None:
    columns = [
        {"name": "like", "kind": "seed", "stored": 999_999, "fields": ["text"]},
        {"name": "text", "kind": "text", "prompt": "Like {{ like }}."},
    ]
    spec = job.batch.spec | {"recipe": {"columns": columns}}
    Batch.objects.update(spec=spec)
    answer = post(api, job, "duplicate")
    assert answer.status_code == 422
    assert "The seed rows no longer exist." in answer.json()["detail"]
    assert Job.objects.count() == 1
