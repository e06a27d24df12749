"""Deleting a dataset on its page."""

import pytest
from django.contrib.auth.models import User
from django.contrib.messages import get_messages
from django.test import Client

from apps.datasets.models import Dataset, DatasetState
from apps.datasets.rows import removal
from apps.work.models import Task
from tests.datasets.factories import create

pytestmark = pytest.mark.django_db


@pytest.fixture
def dataset(alice: User) -> Dataset:
    return create(alice, [("one", "a"), ("two", "b")], "Mine")


def test_delete_removes_the_dataset_and_keeps_classifiers(
    browser: Client, dataset: Dataset
) -> None:
    answer = browser.post(f"/datasets/{dataset.pk}/delete/")
    assert answer["location"] == "/datasets/"
    [message] = get_messages(answer.wsgi_request)
    assert message.message == "“Mine” deleted. Classifiers trained on it are kept."
    assert not Dataset.objects.exists()


def test_a_worker_finishes_a_large_one(
    browser: Client,
    dataset: Dataset,
    announced: list[int],
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: pytest.FixtureRequest,
) -> None:
    monkeypatch.setattr(removal, "SMALL_ROWS", 1)
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        browser.post(f"/datasets/{dataset.pk}/delete/")
    assert announced == [Task.objects.get(subject=str(dataset.pk)).pk]
    assert Dataset.objects.get().state == DatasetState.DELETING
    assert browser.get(f"/datasets/{dataset.pk}/").status_code == 404


def test_someone_elses_dataset_stays(bobs_browser: Client, dataset: Dataset) -> None:
    assert bobs_browser.post(f"/datasets/{dataset.pk}/delete/").status_code == 404
    assert Dataset.objects.filter(pk=dataset.pk).exists()


def test_delete_refuses_get(browser: Client, dataset: Dataset) -> None:
    assert browser.get(f"/datasets/{dataset.pk}/delete/").status_code == 405
