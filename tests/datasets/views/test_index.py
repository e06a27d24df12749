"""The list of datasets, with imports in progress."""

from django.contrib.auth.models import User
from django.test import Client

from apps.datasets.models import Dataset, DatasetState, Upload
from apps.work.models import TaskState
from tests.datasets.factories import create, import_task


def test_index_lists_datasets_newest_first(browser: Client, alice: User) -> None:
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
    Upload.objects.create(owner=alice, file_name="waiting.csv", size=1)
    for state in TaskState:
        upload = Upload.objects.create(owner=alice, file_name=f"{state}.csv", size=1)
        import_task(upload, state=state)
    page = browser.get("/datasets/").content.decode()
    for state in ("queued", "running", "failed"):
        assert f"{state}.csv" in page
    for state in ("waiting", "done"):
        assert f"{state}.csv" not in page
    assert "Waiting for a worker." in page


def test_someone_elses_datasets_and_imports_are_not_listed(
    bobs_browser: Client, alice: User
) -> None:
    create(alice, [("one", "a")], "Private")
    import_task(Upload.objects.create(owner=alice, file_name="mine.csv", size=1))
    page = bobs_browser.get("/datasets/").content.decode()
    assert "Private" not in page
    assert "mine.csv" not in page


def test_without_a_login_it_redirects(db: None) -> None:
    answer = Client().get("/datasets/")
    assert answer.status_code == 302
    assert "/login/" in answer["location"]


def test_index_refuses_post(browser: Client) -> None:
    assert browser.post("/datasets/").status_code == 405
