"""ActiveJobs over HTTP."""

import io
import json
from typing import Any

import pyarrow.parquet as pq
import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from apps.batch.models import Batch, BatchStatus
from apps.batch.pump.pump import run_pump
from apps.datasets.services import create_dataset
from apps.files import ExampleRow
from apps.generation.models import Job, SavedRecipe, StoredRows
from apps.generation.rows.seed_tables import load_tables
from apps.llm.client import close_clients
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server
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
    await run_pump(server.pk)
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


def test_a_job_remembers_the_version_of_its_recipe(
    api: Client, server: Server, browser: Client
) -> None:
    def version_of(prompt: str, name: str = "Reviews") -> int:
        made = post(api, "/jobs", {"name": name, "rows": 1, "recipe": {"prompt": prompt}}).json()
        assert "Recipe v" in browser.get(f"/generate/{made['id']}/").content.decode()
        return int(api.get(f"/api/v1/jobs/{made['id']}").json()["recipe_version"])

    assert [version_of("Write A."), version_of("Write A."), version_of("Write B.")] == [1, 1, 2]
    assert version_of("Write B.", "Others") == 1
    column = {"name": "x", "kind": "seed", "dataset": 999_999}
    text = {"name": "text", "kind": "text", "prompt": "Write."}
    refused = {"name": "Refused", "rows": 1, "recipe": {"columns": [column, text]}}
    assert post(api, "/jobs", refused).status_code == 422
    assert not SavedRecipe.objects.filter(name="Refused").exists()


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
        ({"recipe": {}}, 422, "Enter a prompt"),
        ({"recipe": []}, 422, "recipe"),
        ({"recipe": {"prompt": "{{ x }}"}}, 422, "no column “x”"),
        ({"recipe": {"prompt": "x", "params": {"temperature": 99}}}, 422, "from 0 to 5"),
        ({"server": 999_999}, 404, "server"),
        ({"seed": -1}, 422, "seed"),
    ],
)
def test_create_job_refuses_bad_bodies(
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
    table = pq.read_table(io.BytesIO(b"".join([part async for part in answer.streaming_content])))
    assert table.column_names == ["text", "label", "sentiment", "product"]
    assert table.column("text").to_pylist() == [f"Text {index}." for index in range(5)]
    answer = await async_browser.get(f"/api/v1/jobs/{job.pk}/export?format=xlsx")
    assert (answer.status_code, answer.json()["code"]) == (422, "unsupported_format")
    assert "parquet" in answer.json()["detail"]


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
        ("post", "/add-rows"),
        ("post", "/duplicate"),
        ("delete", ""),
        ("patch", ""),
        ("get", "/card"),
        ("post", "/rows/5/restore"),
        ("post", "/rows/0/reject"),
        ("patch", "/rows/0"),
    ],
)
def test_api_hides_jobs_of_others(
    bobs_api: Client, bob: User, job: Job, method: str, path: str
) -> None:
    body = {"name": "Made", "text_field": "text", "label_field": "label", "rows": 1, "fields": {}}
    request = getattr(bobs_api, method)
    address = f"/api/v1/jobs/{job.pk}{path}"
    if method == "get":
        answer = request(address)
    else:
        answer = request(address, body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert Batch.objects.get(pk=job.batch_id).status == BatchStatus.RUNNING


TICKETS = {
    "columns": [
        {"name": "topic", "values": ["printer", "login"]},
        {
            "name": "ticket",
            "kind": "text",
            "prompt": "About a {{ topic }}.",
            "params": {"max_tokens": 1000},
        },
        {
            "name": "verdict",
            "kind": "structured",
            "prompt": "Is “{{ ticket }}” good?",
            "schema": {
                "type": "object",
                "required": ["tone", "stars"],
                "properties": {
                    "tone": {"type": "string", "enum": ["calm", "angry"]},
                    "stars": {"type": "integer", "enum": [1, 2, 3]},
                },
            },
        },
        {"name": "judge", "kind": "judge", "criteria": [{"name": "real", "max": 3, "at_least": 2}]},
    ],
    "quotas": {"topic": {"printer": 2, "login": 2}},
    "params": {"max_tokens": 400},
}


@pytest.mark.django_db(transaction=True)
def test_dependent_columns_quotas_duplicates_and_a_judge_come_out_exactly(
    api: Client, server: Server
) -> None:
    """Of the tiny model nothing makes sense, but every rule is kept, or the job says why not."""
    body = {"name": "T", "rows": 4, "seed": 3, "refill": True, "near_duplicates": 0.9}
    answer = post(api, "/jobs", body | {"recipe": TICKETS})
    assert answer.status_code == 202, answer.json()
    work(server)
    job = api.get(f"/api/v1/jobs/{answer.json()['id']}").json()
    rows = api.get(f"/api/v1/jobs/{job['id']}/rows?limit=1000").json()["items"]
    good = [row for row in rows if row["status"] == "accepted"]
    if job["status"] == "done":
        topics = [row["output"]["topic"] for row in good]
        assert (topics.count("printer"), topics.count("login")) == (2, 2)
    else:
        assert job["status"] == "failed"
        assert job["reason"].startswith(f"Stopped with {len(good)} of 4 rows")
    for row in good:
        assert list(row["output"]) == [
            *("topic", "ticket", "tone", "stars", "judge_reason", "real"),
        ]
        assert row["output"]["real"] >= 2
        roles = [message["role"] for message in row["prompt"]]
        assert roles == ["user", "assistant"] * 2 + ["user"]
    assert all(row["reason"] and row["code"] for row in rows if row["status"] == "rejected")
    assert job["made"] == len(rows)


def test_a_job_with_seed_rows_keeps_them(api: Client, alice: User, server: Server) -> None:
    dataset = create_dataset(
        owner=alice,
        name="Real",
        rows=[ExampleRow(f"Real {n}", "ab"[n % 2]) for n in range(4)],
        origin="a test",
    )
    column = {"name": "like", "kind": "seed", "dataset": dataset.pk, "order": "walk"}
    recipe = {"columns": [column], "prompt": "Like {{ like_text }} ({{ like_label }})."}
    body = {"name": "T", "rows": 4, "recipe": recipe, "test_dataset": dataset.pk}
    answer = post(api, "/jobs", body)
    assert answer.status_code == 202, answer.json()
    dataset.delete()
    job = Job.objects.get()
    assert job.test_dataset == "Real"
    copy = post(api, f"/jobs/{job.pk}/duplicate")
    assert copy.status_code == 202
    assert api.delete(f"/api/v1/jobs/{job.pk}").status_code == 204
    copied = Job.objects.get()
    assert (copied.pk, copied.name) == (copy.json()["id"], "T (again)")
    assert StoredRows.objects.count() == 2  # the copy's own
    tables = load_tables(alice, copied.spec.recipe)
    assert [row["text"] for row in tables["like"].rows] == [f"Real {n}" for n in range(4)]
    again = post(api, "/jobs", body)
    assert (again.status_code, again.json()["code"]) == (404, "not_found")
    body.pop("test_dataset")
    again = post(api, "/jobs", body)
    assert again.status_code == 422
    assert "No such dataset" in again.json()["detail"]


def test_another_persons_dataset_is_no_seed(api: Client, bob: User, server: Server) -> None:
    dataset = create_dataset(
        owner=bob, name="Bob's", rows=[ExampleRow("Secret", "a")], origin="a test"
    )
    recipe = {
        "columns": [{"name": "like", "kind": "seed", "dataset": dataset.pk}],
        "prompt": "{{ like }}",
    }
    answer = post(api, "/jobs", {"name": "T", "rows": 1, "recipe": recipe})
    assert (answer.status_code, "Secret" in answer.content.decode()) == (422, False)


def test_add_rows(api: Client, job: Job) -> None:
    answer = post(api, f"/jobs/{job.pk}/add-rows", {"rows": 5})
    assert answer.status_code == 202
    assert api.get(f"/api/v1/jobs/{job.pk}").json()["rows"] == 15
    assert post(api, f"/jobs/{job.pk}/add-rows", {"rows": 0}).status_code == 422


def test_settings_of_a_running_job(api: Client, job: Job) -> None:
    path = f"/api/v1/jobs/{job.pk}"
    change = {"name": "Other", "weight": 3, "daily_tokens": 1000}
    shown = api.patch(path, change, content_type="application/json").json()
    assert (shown["name"], shown["weight"], shown["daily_tokens"]) == ("Other", 3, 1000)
    shown = api.patch(path, {"daily_tokens": None}, content_type="application/json").json()
    assert (shown["daily_tokens"], shown["weight"]) == (None, 3)
    bad = api.patch(path, {"width": 0}, content_type="application/json")
    assert bad.status_code == 422


def test_review(api: Client, job: Job) -> None:
    path = f"/api/v1/jobs/{job.pk}/rows"
    path_here = path.removeprefix("/api/v1")
    edited = api.patch(
        f"{path}/0", {"fields": {"text": "Better."}}, content_type="application/json"
    ).json()
    assert edited["edited"] == {"text": "Better.", "label": "positive"}
    assert edited["output"]["text"] == "Text 0."
    bad = api.patch(f"{path}/0", {"fields": {"label": "x"}}, content_type="application/json")
    assert bad.status_code == 422
    assert "does not match the schema" in bad.json()["detail"]
    missing = api.patch(f"{path}/0", {"fields": {"x": "x"}}, content_type="application/json")
    assert missing.status_code == 422
    assert post(api, f"{path_here}/1/reject").json()["code"] == "by_hand"
    assert post(api, f"{path_here}/1/restore").json()["status"] == "accepted"
    nothing = post(api, f"{path_here}/5/restore")
    assert nothing.status_code == 409
    assert "is not a valid row" in nothing.json()["detail"]
    assert post(api, f"{path_here}/99/reject").status_code == 404


@pytest.mark.parametrize("value", ["1e999", "NaN", "[" * 100_000, "9" * 5_000, "-Infinity"])
def test_a_number_that_is_none_is_refused_with_a_sentence(
    api: Client, job: Job, value: str
) -> None:
    job.batch.items.filter(index=0).update(output={"text": "A.", "label": "positive", "n": 1.5})
    path = f"/api/v1/jobs/{job.pk}/rows/0"
    answer = api.patch(path, {"fields": {"n": value}}, content_type="application/json")
    assert answer.status_code == 422
    assert "“n” is not valid JSON" in answer.json()["detail"]


def test_all_that_is_wrong_with_a_change_is_said_at_once(api: Client, job: Job) -> None:
    job.batch.items.filter(index=0).update(output={"text": "A.", "label": "positive", "n": [1]})
    change = {"fields": {"n": "[", "label": "so-so", "x": "1", "text": "A" * 999}}
    path = f"/api/v1/jobs/{job.pk}/rows/0"
    said = api.patch(path, change, content_type="application/json").json()["detail"]
    assert "“n” is not valid JSON" in said
    assert "“x”" in said
    assert "“label”" in said
    assert "“text”" in said


def test_the_data_card(api: Client, job: Job) -> None:
    card = api.get(f"/api/v1/jobs/{job.pk}/card").json()
    assert card["counts"]["accepted"] == 5
    assert card["seed"] == 7
    assert card["prompts"] == ["Write a {{ sentiment }} review of a {{ product }}."]
    assert {entry["code"] for entry in card["left_out"]} == {"length", "stalled"}
    assert "synthetic" in card["origin"]
