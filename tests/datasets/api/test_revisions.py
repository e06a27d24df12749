"""Changes of a whole dataset over the API, and its versions."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.datasets import services
from apps.datasets.models import Dataset
from apps.datasets.rows import bulk_edits
from apps.work.models import Task
from tests.datasets.factories import create, shown

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def dataset(alice: User) -> Dataset:
    return create(alice, [("one", "a"), ("two", "b"), ("three", "a"), ("four", "")])


def post(client: Client, dataset: Dataset, path: str, body: Any = None) -> Any:
    url = f"/api/v1/datasets/{dataset.pk}/{path}"
    return client.post(url, body or {}, content_type="application/json")


def test_merge_returns_its_revision(api: Client, dataset: Dataset) -> None:
    answer = post(api, dataset, "merge-labels", {"labels": ["a"], "into": "b"})
    assert answer.status_code == 200
    made = answer.json()
    assert (made["number"], made["rows"], made["undone"], made["undoes"]) == (1, 2, False, None)
    assert made["what"] == "“a” merged into “b” (2 rows)"
    assert [label for *_, label, _ in shown(dataset)] == ["b", "b", "b", ""]


def test_merge_of_nothing_is_204(api: Client, dataset: Dataset) -> None:
    answer = post(api, dataset, "merge-labels", {"labels": ["a"], "into": "a"})
    assert answer.status_code == 204


@pytest.mark.parametrize(
    "body", [{"labels": [], "into": "a"}, {"labels": ["a"], "into": " "}, {"labels": ["a"]}]
)
def test_merge_refuses_bad_input(api: Client, dataset: Dataset, body: Any) -> None:
    assert post(api, dataset, "merge-labels", body).status_code == 422


@pytest.mark.parametrize("body", [{"share": 0}, {"share": 1}, {"seed": -1}, {"seed": 2**32}])
def test_split_refuses_bad_input(api: Client, dataset: Dataset, body: Any) -> None:
    assert post(api, dataset, "split", body).status_code == 422


def test_split_marks_rows_and_undo_reverts_it(api: Client, dataset: Dataset) -> None:
    before = shown(dataset)
    assert post(api, dataset, "split", {"share": 0.5, "seed": 1}).status_code == 200
    assert {split for *_, split in shown(dataset)} == {"test", "train", ""}
    undone = post(api, dataset, "undo").json()
    assert (undone["number"], undone["undoes"]) == (2, 1)
    assert shown(dataset) == before
    answer = post(api, dataset, "undo")
    assert (answer.status_code, answer.json()["code"]) == (409, "nothing_to_undo")


def test_a_large_change_is_made_by_a_worker(
    api: Client, dataset: Dataset, announced: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_edits, "MAX_WAITED_ROWS", 0)
    answer = post(api, dataset, "merge-labels", {"labels": ["a"], "into": "b"})
    assert answer.status_code == 202
    assert answer.json() == {"kind": "merge", "done": 0, "total": 0, "error": ""}
    assert announced == [Task.objects.get().pk]
    assert api.get(f"/api/v1/datasets/{dataset.pk}/change").json()["kind"] == "merge"
    busy = post(api, dataset, "split")
    assert (busy.status_code, busy.json()["code"]) == (409, "being_changed")


def test_revisions_come_in_pages_newest_first(api: Client, dataset: Dataset) -> None:
    for label in ("c", "d", "e"):
        services.relabel_rows(dataset, [0], label)
    url = f"/api/v1/datasets/{dataset.pk}/revisions"
    first = api.get(f"{url}?limit=2").json()
    assert [item["number"] for item in first["items"]] == [3, 2]
    rest = api.get(f"{url}?limit=2&after={first['next']}").json()
    assert ([item["number"] for item in rest["items"]], rest["next"]) == ([1], None)


def test_snapshot_changes_with_the_rows(api: Client, dataset: Dataset) -> None:
    url = f"/api/v1/datasets/{dataset.pk}/snapshot"
    before = api.get(url).json()
    services.delete_rows(dataset, [0])
    after = api.get(url).json()
    assert (before["version"], before["rows"], after["version"], after["rows"]) == (0, 4, 1, 3)
    assert before["hash"] != after["hash"]


@pytest.mark.parametrize("path", ["merge-labels", "split", "undo"])
def test_revisions_refuse_other_methods_and_requests_without_a_key(
    api: Client, dataset: Dataset, path: str
) -> None:
    assert api.get(f"/api/v1/datasets/{dataset.pk}/{path}").status_code == 405
    assert post(Client(), dataset, path).status_code == 401
