"""Jobs over HTTP."""

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from apps.batch import pump
from apps.batch.models import Batch, BatchStatus
from apps.core.redis import close_async_redis
from apps.generation.models import Job
from apps.llm.client import close_clients
from apps.llm.models import Server
from tests.generation.conftest import body_of

# From the documentation of the API, as it stands there.
BODY = """
{"name": "Reviews", "rows": 200, "seed": 7,
 "recipe": {"system": "You write realistic synthetic data.",
            "prompt": "Write a {{ sentiment }} review of a {{ product }}.",
            "attributes": {"sentiment": ["positive", "negative"], "product": ["kettle", "lamp"]},
            "quotas": {"sentiment": {"positive": 100, "negative": 100}},
            "schema": {"type": "object", "required": ["text", "label"],
                       "properties": {"text": {"type": "string", "maxLength": 300}, "label": {"type": "string", "enum": ["positive", "negative"]}}},
            "params": {"temperature": 0.9, "min_p": 0.05, "max_tokens": 200}}}
"""  # noqa: E501


def post(client: Client, path: str, data: Any = None) -> Any:
    return client.post(f"/api/v1{path}", data, content_type="application/json")


@async_to_sync
async def work(server: Server) -> None:
    await pump.run(server.pk)
    await close_clients()
    await close_async_redis()


@pytest.mark.django_db(transaction=True)
def test_the_documented_body_runs_as_it_stands(api: Client, server: Server) -> None:
    body = json.loads(BODY) | {"rows": 8}
    body["recipe"]["quotas"] = {"sentiment": {"positive": 4, "negative": 4}}
    body["recipe"]["params"]["max_tokens"] = 60
    assert post(api, "/jobs", BODY).status_code == 202
    assert Job.objects.get().batch.items.count() == 200
    Job.objects.get().batch.delete()
    answer = post(api, "/jobs", body)
    assert answer.json() == {"id": answer.json()["id"], "status": "queued"}
    work(server)
    job = api.get(f"/api/v1/jobs/{answer.json()['id']}").json()
    assert job["status"] == "done"
    counts = job["counts"]
    assert (sum(counts.values()), counts["pending"], counts["running"]) == (8, 0, 0)
    assert job["rows_per_s"] > 0
    assert 0 <= job["cached_share"] <= 1
    rows = api.get(f"/api/v1/jobs/{job['id']}/rows").json()["items"]
    assert [row["index"] for row in rows] == list(range(8))
    assert all(row["status"] == "accepted" or row["reason"] for row in rows)
    assert all(row["prompt"][0]["role"] == "system" and row["raw"] for row in rows)
    asked = [row["prompt"][1]["content"] for row in rows]
    assert sum("positive" in prompt for prompt in asked) == 4


def test_a_job_as_it_is_shown(api: Client, job: Job) -> None:
    shown = api.get(f"/api/v1/jobs/{job.pk}").json()
    assert shown["counts"] == {
        "pending": 2,
        "running": 1,
        "accepted": 5,
        "rejected": 1,
        "failed": 1,
    }
    assert (shown["rows"], shown["seed"], shown["width"]) == (10, 7, 1)
    assert shown["cached_share"] == pytest.approx(250 / 300)
    assert shown["recipe"]["prompt"].startswith("Write a")


def test_lists_the_newest_first(api: Client, job: Job, bobs_api: Client) -> None:
    assert [item["id"] for item in api.get("/api/v1/jobs").json()["items"]] == [job.pk]
    assert bobs_api.get("/api/v1/jobs").json() == {"items": [], "next": None}


@pytest.mark.parametrize(
    ("change", "status", "sentence"),
    [
        ({"rows": 0}, 422, "rows"),
        ({"rows": 100_001}, 422, "rows"),
        ({"name": " "}, 422, "name"),
        ({"recipe": {}}, 422, "Write the prompt"),
        ({"recipe": []}, 422, "recipe"),
        ({"recipe": {"prompt": "{{ x }}"}}, 422, "there is no column “x”"),
        ({"recipe": {"prompt": "x", "params": {"temperature": 99}}}, 422, "from 0 to 5"),
        ({"server": 999_999}, 404, "server"),
        ({"seed": -1}, 422, "seed"),
    ],
)
def test_bad_bodies(
    api: Client, server: Server, change: dict[str, Any], status: int, sentence: str
) -> None:
    answer = post(api, "/jobs", json.loads(BODY) | change)
    assert answer.status_code == status
    assert sentence in answer.json()["detail"]
    assert not Job.objects.exists()


def test_every_mistake_has_its_place(api: Client, server: Server) -> None:
    body = {"name": "x", "rows": 1, "recipe": {"prompt": "", "params": {"n": 1}}}
    errors = post(api, "/jobs", body).json()["errors"]
    assert [error["loc"] for error in errors] == [
        ["body", "data", "recipe", "prompt"],
        ["body", "data", "recipe", "params", "n"],
    ]


def test_without_a_server(api: Client) -> None:
    answer = post(api, "/jobs", BODY)
    assert (answer.status_code, answer.json()["code"]) == (503, "no_server")


def test_pause_resume_cancel(api: Client, job: Job) -> None:
    for action, status in (("pause", "paused"), ("resume", "queued"), ("cancel", "cancelled")):
        answer = post(api, f"/jobs/{job.pk}/{action}")
        assert (answer.status_code, answer.json()["status"]) == (202, status)
    answer = post(api, f"/jobs/{job.pk}/resume")
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")


def test_retry_failed(api: Client, job: Job) -> None:
    Batch.objects.filter(pk=job.batch_id).update(status=BatchStatus.DONE)
    assert post(api, f"/jobs/{job.pk}/retry-failed").json()["status"] == "queued"
    assert api.get(f"/api/v1/jobs/{job.pk}").json()["counts"]["failed"] == 0


def test_rows_by_status_in_pages(api: Client, job: Job) -> None:
    path = f"/api/v1/jobs/{job.pk}/rows?status=accepted&limit=3"
    first = api.get(path).json()
    second = api.get(f"{path}&after={first['next']}").json()
    assert [row["index"] for row in first["items"] + second["items"]] == [0, 1, 2, 3, 4]
    assert second["next"] is None
    assert first["items"][0]["usage"] == {
        "prompt_tokens": 60,
        "cached_tokens": 50,
        "completion_tokens": 20,
    }
    assert api.get(f"/api/v1/jobs/{job.pk}/rows?status=magic").status_code == 422


@pytest.mark.django_db(transaction=True)
async def test_exports(async_browser: AsyncClient, job: Job) -> None:
    for name, lines in (("jsonl", 5), ("csv", 6), ("chat", 5)):
        answer = await async_browser.get(f"/api/v1/jobs/{job.pk}/export?format={name}")
        assert len((await body_of(answer)).splitlines()) == lines
    answer = await async_browser.get(f"/api/v1/jobs/{job.pk}/export?format=parquet")
    assert (answer.status_code, answer.json()["code"]) == (422, "unsupported_format")
    assert "jsonl" in answer.json()["detail"]


def test_to_dataset(api: Client, job: Job) -> None:
    body = {"name": "Made", "text_field": "text", "label_field": "label"}
    answer = post(api, f"/jobs/{job.pk}/to-dataset", body)
    assert answer.status_code == 201
    assert answer.json()["rows"] == 5
    assert api.get(f"/api/v1/datasets/{answer.json()['id']}").status_code == 200
    answer = post(api, f"/jobs/{job.pk}/to-dataset", body | {"text_field": "x"})
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_field")


def test_nothing_accepted_yet(api: Client, job: Job) -> None:
    job.batch.items.update(status="pending")
    body = {"name": "Made", "text_field": "text", "label_field": "label"}
    answer = post(api, f"/jobs/{job.pk}/to-dataset", body)
    assert (answer.status_code, answer.json()["code"]) == (409, "nothing_accepted")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", ""),
        ("get", "/rows"),
        ("get", "/export"),
        ("post", "/pause"),
        ("post", "/resume"),
        ("post", "/cancel"),
        ("post", "/retry-failed"),
        ("post", "/to-dataset"),
    ],
)
def test_anothers_job_is_not_there(
    bobs_api: Client, bob: User, job: Job, method: str, path: str
) -> None:
    body = {"name": "Made", "text_field": "text", "label_field": "label"}
    if method == "post":
        answer = post(bobs_api, f"/jobs/{job.pk}{path}", body)
    else:
        answer = bobs_api.get(f"/api/v1/jobs/{job.pk}{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert Batch.objects.get(pk=job.batch_id).status == BatchStatus.RUNNING
