"""Rows of a dataset over the API."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.datasets.models import Dataset
from tests.datasets.factories import create, shown

pytestmark = pytest.mark.django_db

SENT = {"content_type": "application/json"}


@pytest.fixture
def dataset(alice: User) -> Dataset:
    rows = [("one", "a"), ("two", "b", "test"), ("three", ""), ("ONE", "b", "train")]
    return create(alice, rows)


def path(dataset: Dataset, index: int) -> str:
    return f"/api/v1/examples/{dataset.examples.get(index=index).pk}"


@pytest.mark.parametrize(
    ("query", "indices"),
    [
        ("", [0, 1, 2, 3]),
        ("label=b", [1, 3]),
        ("label=", [2]),
        ("split=test", [1]),
        ("split=", [0, 2]),
        ("q=ONE", [0, 3]),
        ("issue=duplicate", [0, 3]),
        ("issue=conflict&label=a", [0]),
    ],
)
def test_list_filters_rows(api: Client, dataset: Dataset, query: str, indices: list[int]) -> None:
    items = api.get(f"/api/v1/datasets/{dataset.pk}/examples?{query}").json()["items"]
    assert sorted(item["index"] for item in items) == indices


def test_list_refuses_an_unknown_issue(api: Client, dataset: Dataset) -> None:
    answer = api.get(f"/api/v1/datasets/{dataset.pk}/examples?issue=ugly")
    assert answer.status_code == 422


def test_add_returns_what_was_added_and_what_was_rejected(api: Client, dataset: Dataset) -> None:
    rows = [{"text": "four", "label": "c", "meta": {"id": "1"}}, {"text": " "}]
    answer = api.post(f"/api/v1/datasets/{dataset.pk}/examples", {"rows": rows}, **SENT)
    assert answer.status_code == 201
    assert answer.json() == {
        "version": 1,
        "added": 1,
        "rejected": [{"row": 2, "column": "text", "reason": "The text is empty.", "file": ""}],
    }
    assert dataset.examples.get(index=4).meta == {"id": "1"}


@pytest.mark.parametrize(
    "rows", [[], [{"label": "a"}], [{"text": "a", "split": "tset"}], [{"text": "a"}] * 1_001]
)
def test_add_refuses_bad_input(api: Client, dataset: Dataset, rows: list[Any]) -> None:
    answer = api.post(f"/api/v1/datasets/{dataset.pk}/examples", {"rows": rows}, **SENT)
    assert answer.status_code == 422
    assert dataset.examples.count() == 4


def test_change_sets_label_and_split(api: Client, dataset: Dataset) -> None:
    answer = api.patch(path(dataset, 0), {"label": "z", "split": "validation"}, **SENT)
    assert (answer.json()["label"], answer.json()["split"]) == ("z", "validation")
    assert shown(dataset)[0] == (0, "one", "z", "validation")


@pytest.mark.parametrize("body", [{"label": ""}, {"label": "  "}, {"split": "x"}, {"label": 5}])
def test_change_refuses_bad_input(api: Client, dataset: Dataset, body: Any) -> None:
    assert api.patch(path(dataset, 0), body, **SENT).status_code == 422
    assert shown(dataset)[0][2] == "a"


def test_delete_removes_one_row(api: Client, dataset: Dataset) -> None:
    url = path(dataset, 1)
    assert api.delete(url).status_code == 204
    assert api.delete(url).status_code == 404
    assert [index for index, *_ in shown(dataset)] == [0, 2, 3]


def test_change_matching_counts_its_rows(api: Client, dataset: Dataset) -> None:
    url = f"/api/v1/datasets/{dataset.pk}/examples/change-matching"
    body = {"label": "b", "action": "split", "value": "validation"}
    assert api.post(url, body, **SENT).json()["rows"] == 2
    assert api.post(url, body, **SENT).status_code == 204  # they have it
    bad = api.post(url, body | {"value": "tset"}, **SENT)
    assert (bad.status_code, bad.json()["code"]) == (422, "invalid")


def test_someone_elses_rows_are_not_there(bobs_api: Client, dataset: Dataset) -> None:
    url = f"/api/v1/datasets/{dataset.pk}/examples"
    assert bobs_api.get(url).status_code == 404
    assert bobs_api.patch(path(dataset, 0), {"label": "z"}, **SENT).status_code == 404
    assert bobs_api.delete(path(dataset, 0)).status_code == 404
    body = {"action": "delete"}
    assert bobs_api.post(f"{url}/change-matching", body, **SENT).status_code == 404
    assert dataset.examples.count() == 4
