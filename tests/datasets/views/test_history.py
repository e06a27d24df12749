"""The history of a dataset."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.datasets import services
from apps.datasets.models import Dataset, Revision
from apps.datasets.views import datasets
from tests.datasets.factories import create


@pytest.fixture
def dataset(alice: User) -> Dataset:
    return create(alice, [("one", "a"), ("two", "b")])


def page_of(browser: Client, dataset: Dataset) -> str:
    return browser.get(f"/datasets/{dataset.pk}/history/").content.decode()


def test_history_lists_changes_newest_first_and_undoes_them(
    browser: Client, dataset: Dataset, alice: User
) -> None:
    services.relabel_rows(dataset, [0], "first", by=alice)
    services.set_split(dataset, [1], "test", by=alice)
    page = page_of(browser, dataset)
    assert "Row 1: label changed from “a” to “first”" in page
    assert page.index("1 row moved to test") < page.index("Row 1: label changed")
    assert "alice" in page


def test_an_unfinished_change_is_not_listed(browser: Client, dataset: Dataset) -> None:
    Revision.objects.create(dataset=dataset, number=1, what="Half of it", complete=False)
    assert "Half of it" not in page_of(browser, dataset)


def test_only_the_last_changes_are_listed(
    browser: Client, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "REVISIONS_SHOWN", 2)
    for label in ("c", "d", "e"):
        services.relabel_rows(dataset, [0], label)
    page = page_of(browser, dataset)
    assert "to “e”" in page
    assert "to “c”" not in page


def test_someone_elses_history_is_not_there(bobs_browser: Client, dataset: Dataset) -> None:
    assert bobs_browser.get(f"/datasets/{dataset.pk}/history/").status_code == 404


def test_history_refuses_post(browser: Client, dataset: Dataset) -> None:
    assert browser.post(f"/datasets/{dataset.pk}/history/").status_code == 405
