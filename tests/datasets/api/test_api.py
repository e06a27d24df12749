"""Datasets over HTTP, as a program sees them."""

import json
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import AsyncClient, Client
from pytest_django import Settings

from apps.core.models import ApiKey
from apps.datasets.models import Dataset, TaskKind, Upload
from apps.work import services as work
from tests.files.writers.test_csv_writer import CELLS

pytestmark = pytest.mark.django_db(transaction=True)

CSV = b"text,label,split\nhello,a,train\nbye,b,test\n,a,\nHello ,a,\n"


def send(client: Client, content: bytes = CSV, name: str = "data.csv", **fields: str) -> Any:
    file = SimpleUploadedFile(name, content)
    return client.post("/api/v1/datasets", {"file": file, **fields})


def download(user: User, pk: int, form: str) -> Any:
    """Over ASGI, as it is served: the answer comes in pieces."""
    _, token = ApiKey.issue(user=user, name="download")

    async def get() -> tuple[Any, bytes]:
        answer = await AsyncClient().get(
            f"/api/v1/datasets/{pk}/export?format={form}",
            headers={"authorization": f"Bearer {token}"},
        )
        if not answer.streaming:
            return answer, answer.content
        return answer, b"".join([piece async for piece in answer.streaming_content])

    return async_to_sync(get)()


def test_upload_creates_a_dataset_with_labels_and_splits(api: Client, settings: Settings) -> None:
    answer = send(api, name="../../my data.csv")
    assert answer.status_code == 201
    made = answer.json()
    assert (made["name"], made["rows"]) == ("my data.csv", 3)
    assert made["labels"] == {"a": 2, "b": 1}
    assert made["splits"] == {"train": 1, "test": 1}
    assert made["duplicates"] == 1
    assert made["rejected"] == [
        {"row": 4, "column": "text", "reason": "The text is empty.", "file": ""}
    ]
    assert api.get(f"/api/v1/datasets/{made['id']}").json() == made
    assert [item["id"] for item in api.get("/api/v1/datasets").json()["items"]] == [made["id"]]
    assert list(Path(settings.UPLOADS_DIR).iterdir()) == []
    assert not Upload.objects.exists()


def test_columns_can_be_named(api: Client) -> None:
    content = b"q;kind;when\nhello there;a;train\nbye;b;test\n"
    made = send(api, content, text_column="q", label_column="when", split_column="").json()
    assert made["labels"] == {"train": 1, "test": 1}
    answer = send(api, content, text_column="nope")
    assert answer.status_code == 422
    assert "“q”, “kind”, “when”" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (b"", "", ""),
        (b"text,label\n", "nothing_usable", "No rows below"),
        (b"text,label\n,a\nb,\n", "nothing_usable", "row 2, text: The text is empty."),
        (b"PK\x03\x04", "bad_file", "Excel"),
        (b"," * 1_000_000, "bad_file", "1,000,001 columns"),
        (b"\x1f\x8b" + bytes(100), "bad_file", "gzip"),
    ],
)
def test_a_bad_file_leaves_nothing(
    api: Client, settings: Settings, content: bytes, code: str, says: str
) -> None:
    answer = send(api, content)
    assert answer.status_code == 422
    if code:
        assert answer.json()["code"] == code
        assert says in answer.json()["detail"]
    assert not Dataset.objects.exists()
    folder = Path(settings.UPLOADS_DIR)
    assert not folder.exists() or list(folder.iterdir()) == []


def test_too_large_is_413(api: Client, settings: Settings) -> None:
    settings.UPLOAD_LIMIT_BYTES = 20
    assert send(api).status_code == 413
    assert not Upload.objects.exists()


def test_examples_come_in_pages(api: Client) -> None:
    made = send(api).json()
    path = f"/api/v1/datasets/{made['id']}/examples"
    first = api.get(f"{path}?limit=2").json()
    rest = api.get(f"{path}?limit=2&after={first['next']}").json()
    assert [item["text"] for item in first["items"] + rest["items"]] == ["hello", "bye", "Hello "]
    assert [item["origin"] for item in rest["items"]] == ["row 5"]
    assert rest["next"] is None
    assert len(api.get(f"{path}?label=b").json()["items"]) == 1


def test_a_label_can_be_changed(api: Client, bobs_api: Client) -> None:
    made = send(api).json()
    example = api.get(f"/api/v1/datasets/{made['id']}/examples").json()["items"][0]
    path = f"/api/v1/examples/{example['id']}"
    body = {"label": "  b "}
    assert bobs_api.patch(path, body, content_type="application/json").status_code == 404
    answer = api.patch(path, body, content_type="application/json")
    assert answer.json()["label"] == "b"
    assert api.get(f"/api/v1/datasets/{made['id']}").json()["labels"] == {"b": 2, "a": 1}
    assert api.patch(path, {"label": " "}, content_type="application/json").status_code == 422


def test_a_round_trip_through_a_spreadsheet_changes_nothing(api: Client, alice: User) -> None:
    lines = [json.dumps({"text": cell, "label": f"={number}"}) for number, cell in enumerate(CELLS)]
    made = send(api, "\n".join(lines).encode(), "cells.jsonl").json()
    answer, written = download(alice, made["id"], "csv")
    assert "attachment" in answer["Content-Disposition"]
    assert written.startswith(b'\xef\xbb\xbf"text",label,split')
    assert b",'=0," in written
    again = send(api, written).json()
    assert again["labels"] == made["labels"]
    exact = [download(alice, pk, "jsonl")[1] for pk in (made["id"], again["id"])]
    assert exact[0] == exact[1]
    assert [json.loads(line)["text"] for line in exact[0].splitlines()] == CELLS


def test_api_hides_datasets_of_others(api: Client, bobs_api: Client, bob: User) -> None:
    made = send(api).json()
    path = f"/api/v1/datasets/{made['id']}"
    assert bobs_api.get(path).status_code == 404
    assert bobs_api.get(f"{path}/examples").status_code == 404
    assert bobs_api.delete(path).status_code == 404
    assert download(bob, made["id"], "csv")[0].status_code == 404
    assert bobs_api.get("/api/v1/datasets").json()["items"] == []
    assert api.delete(path).status_code == 204
    assert not Dataset.objects.exists()


def test_unknown_formats_and_verbs(api: Client, alice: User) -> None:
    made = send(api).json()
    assert download(alice, made["id"], "xlsx")[0].status_code == 422
    assert api.put(f"/api/v1/datasets/{made['id']}").status_code == 405


def test_a_large_file_is_imported_in_the_background(
    api: Client, bobs_api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = send(api, background="true")
    assert answer.status_code == 202
    started = answer.json()["import"]
    assert (started["status"], started["dataset"]) == ("queued", None)
    path = f"/api/v1/imports/{started['id']}"
    assert bobs_api.get(path).status_code == 404
    assert api.get("/api/v1/datasets").json()["items"] == []
    work.run_subject(TaskKind.IMPORT, started["id"])
    done = api.get(path).json()
    assert (done["status"], done["share"], done["error"]) == ("done", 1.0, "")
    assert api.get(f"/api/v1/datasets/{done['dataset']}").json()["rows"] == 3
    waiting = send(api, background="true").json()["import"]
    assert api.delete(f"/api/v1/imports/{waiting['id']}").status_code == 204
    assert api.get(f"/api/v1/imports/{waiting['id']}").status_code == 404


def test_several_files(api: Client) -> None:
    files = [
        SimpleUploadedFile("train.csv", b"text,label\nhello,a\n"),
        SimpleUploadedFile("test.csv", b"text,label\nHello,a\n"),
    ]
    made = api.post("/api/v1/datasets", {"file": files, "name": "Two"}).json()
    assert made["splits"] == {"train": 1, "test": 1}
    report = api.get(f"/api/v1/datasets/{made['id']}/report").json()
    assert (report["leak_rows"], report["repeated"]) == (1, 1)


def test_unlabelled_rows_and_two_labels(api: Client) -> None:
    assert send(api, b"hello\nbye\n", "a.txt").json()["unlabelled"] == 2
    content = b"text,kind,sub\nhello,a,b\nbye,,\n"
    sent = {"label_column": "kind", "second_label_column": "sub", "keep_unlabelled": "true"}
    made = send(api, content, **sent).json()
    assert (made["labels"], made["unlabelled"]) == ({"a / b": 1}, 1)
    rows = api.get(f"/api/v1/datasets/{made['id']}/examples?label=").json()["items"]
    assert [row["text"] for row in rows] == ["bye"]


def test_ignored_columns_are_left_out(api: Client) -> None:
    content = b"text,label,id,source\nhello,a,7,crowd\n"
    made = send(api, content, ignored_columns="id").json()
    [row] = api.get(f"/api/v1/datasets/{made['id']}/examples").json()["items"]
    assert row["meta"] == {"source": "crowd"}
    answer = send(api, content, ignored_columns="idd")
    assert "No column “idd”. Available columns: “text”, “label”" in answer.json()["detail"]


def test_rows_can_be_changed_and_it_can_be_undone(api: Client, bobs_api: Client) -> None:
    made = send(api).json()
    path = f"/api/v1/datasets/{made['id']}"
    sent: dict[str, Any] = {"content_type": "application/json"}
    before = api.get(f"{path}/snapshot").json()
    rows = [{"text": "new", "label": "c", "meta": {"id": "7"}}, {"text": " "}]
    added = api.post(f"{path}/examples", {"rows": rows}, **sent)
    assert (added.status_code, added.json()["added"]) == (201, 1)
    assert added.json()["rejected"][0]["reason"] == "The text is empty."
    items = api.get(f"{path}/examples?q=NEW").json()["items"]
    assert items[0]["meta"] == {"id": "7"}
    example = f"/api/v1/examples/{items[0]['id']}"
    assert bobs_api.delete(example).status_code == 404
    assert api.patch(example, {"split": "test"}, **sent).json()["split"] == "test"
    merged = api.post(f"{path}/merge-labels", {"labels": ["a", "b"], "into": "ab"}, **sent)
    assert merged.json()["rows"] == 3
    assert (
        api.post(f"{path}/merge-labels", {"labels": ["zz"], "into": "a"}, **sent).status_code == 204
    )
    assert api.delete(example).status_code == 204
    for _ in range(4):
        assert api.post(f"{path}/undo", **sent).status_code == 200
    assert api.post(f"{path}/undo", **sent).json()["code"] == "nothing_to_undo"
    after = api.get(f"{path}/snapshot").json()
    assert (after["hash"], after["version"]) == (before["hash"], 8)
    revisions = api.get(f"{path}/revisions").json()["items"]
    assert [item["undoes"] for item in revisions[:4]] == [1, 2, 3, 4]
    assert api.post(f"{path}/split", {"share": 2}, **sent).status_code == 422
    for verb in ("undo", "split", "merge-labels", "examples"):
        body = {"labels": ["a"], "into": "b", "rows": [{"text": "a"}]}
        assert bobs_api.post(f"{path}/{verb}", body, **sent).status_code == 404
    for part in ("report", "snapshot", "revisions", "rejected"):
        assert bobs_api.get(f"{path}/{part}").status_code == 404


def test_rejected_rows_can_be_listed_and_downloaded(api: Client, alice: User) -> None:
    made = send(api, b"text,=label\nhello,a\n,=b\nbye,\n", label_column="=label").json()
    rows = api.get(f"/api/v1/datasets/{made['id']}/rejected?limit=1").json()
    assert (rows["items"][0]["row"], bool(rows["next"])) == (3, True)

    async def get() -> bytes:
        client = AsyncClient()
        await client.aforce_login(alice)
        answer = await client.get(f"/datasets/{made['id']}/rejected/")
        assert "rejected rows.csv" in answer["Content-Disposition"]
        return b"".join([piece async for piece in answer.streaming_content])

    lines = async_to_sync(get)().decode("utf-8-sig").splitlines()
    assert lines == [
        '"file",row,column,reason',
        ",3,text,The text is empty.",
        ",4,'=label,The label is empty.",
    ]
