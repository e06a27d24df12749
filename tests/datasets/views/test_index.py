"""The list of datasets, with imports in progress."""

from django.contrib.auth.models import User
from django.test import Client

from apps.datasets.models import Dataset, DatasetState, Upload, UploadState
from tests.datasets.factories import create


def test_it_works(browser: Client, alice: User) -> None:
    create(alice, [("one", "a")], "First")
    create(alice, [("one", "a"), ("two", "b")], "Second")
    page = browser.get("/datasets/").content.decode()
    assert page.index("Second") < page.index("First")


def test_incomplete_datasets_are_hidden(browser: Client, alice: User) -> None:
    for state in (DatasetState.IMPORTING, DatasetState.DELETING):
        Dataset.objects.filter(pk=create(alice, [("x", "a")], f"Is {state}").pk).update(state=state)
    page = browser.get("/datasets/").content.decode()
    assert "Is importing" not in page
    assert "Is deleting" not in page


def test_imports_in_progress_and_failed_are_listed(browser: Client, alice: User) -> None:
    for state in UploadState.values:
        Upload.objects.create(owner=alice, file_name=f"{state}.csv", size=1, state=state)
    page = browser.get("/datasets/").content.decode()
    for state in ("queued", "importing", "failed"):
        assert f"{state}.csv" in page
    for state in ("waiting", "done"):
        assert f"{state}.csv" not in page


def test_someone_elses_datasets_and_imports_are_not_listed(
    bobs_browser: Client, alice: User
) -> None:
    create(alice, [("one", "a")], "Private")
    Upload.objects.create(owner=alice, file_name="mine.csv", size=1, state=UploadState.QUEUED)
    page = bobs_browser.get("/datasets/").content.decode()
    assert "Private" not in page
    assert "mine.csv" not in page


def test_without_a_login_it_redirects(db: None) -> None:
    answer = Client().get("/datasets/")
    assert answer.status_code == 302
    assert "/login/" in answer["location"]


def test_wrong_verb(browser: Client) -> None:
    assert browser.post("/datasets/").status_code == 405
