"""The progress of a change of many rows, polled by the page of its dataset."""

import pytest
from django.contrib.auth.models import User
from django.contrib.messages import get_messages
from django.test import Client

from apps.datasets import services
from apps.datasets.models import Dataset
from apps.work.models import TaskState
from tests.datasets.factories import change_task, create


@pytest.fixture
def dataset(alice: User) -> Dataset:
    return create(alice, [("one", "a"), ("two", "b")])


def test_pending_change_shows_its_progress(browser: Client, dataset: Dataset) -> None:
    change_task(dataset, state=TaskState.RUNNING, done=1_500, total=4_000)
    page = browser.get(f"/datasets/{dataset.pk}/change/?version=0").content.decode()
    assert "<html" not in page
    assert "1,500" in page
    assert "4,000" in page


def test_a_queued_change_says_what_it_waits_for(browser: Client, dataset: Dataset) -> None:
    change_task(dataset)
    page = browser.get(f"/datasets/{dataset.pk}/change/?version=0").content.decode()
    assert "Waiting for a worker." in page


@pytest.mark.parametrize(
    ("version", "says"),
    [("0", ["The rows were changed."]), ("1", ["No rows were changed."]), ("", [])],
)
def test_after_the_change_the_page_reports_whether_rows_changed(
    browser: Client, dataset: Dataset, version: str, says: list[str]
) -> None:
    services.relabel_rows(dataset, [0], "c")  # version 1
    answer = browser.get(f"/datasets/{dataset.pk}/change/?version={version}")
    assert answer["location"] == f"/datasets/{dataset.pk}/"
    assert [message.message for message in get_messages(answer.wsgi_request)] == says


def test_htmx_reloads_the_whole_page(browser: Client, dataset: Dataset) -> None:
    answer = browser.get(f"/datasets/{dataset.pk}/change/", headers={"HX-Request": "true"})
    assert answer["HX-Redirect"] == f"/datasets/{dataset.pk}/"


def test_someone_elses_change_is_not_there(bobs_browser: Client, dataset: Dataset) -> None:
    assert bobs_browser.get(f"/datasets/{dataset.pk}/change/").status_code == 404


def test_pending_change_refuses_post(browser: Client, dataset: Dataset) -> None:
    assert browser.post(f"/datasets/{dataset.pk}/change/").status_code == 405
