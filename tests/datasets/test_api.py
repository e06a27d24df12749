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
from apps.datasets.models import Dataset, Upload
from tests.datasets.test_formats import CELLS

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


def test_it_works(api: Client, settings: Settings) -> None:
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
        (b"text,label\n", "nothing_usable", "no row below"),
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
    assert written.startswith(b"\xef\xbb\xbftext,label,split")
    assert b",'=0," in written
    again = send(api, written).json()
    assert again["labels"] == made["labels"]
    exact = [download(alice, pk, "jsonl")[1] for pk in (made["id"], again["id"])]
    assert exact[0] == exact[1]
    assert [json.loads(line)["text"] for line in exact[0].splitlines()] == CELLS


def test_what_is_not_yours_is_not_there(api: Client, bobs_api: Client, bob: User) -> None:
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
