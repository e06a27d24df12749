"""From a file to a dataset in the browser: choose, check columns, import, watch, discard."""

import uuid

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.datasets.imports import import_queue, uploads
from apps.datasets.imports.options import ImportOptions
from apps.datasets.models import Dataset, Upload, UploadState
from apps.files import ColumnMapping
from apps.work.models import TaskState
from tests.datasets import factories

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}
CSV = b"text,label\nhello,a\nbye,b\n"
CHOSEN = {
    "header": "names",
    "name": "x",
    "column": ["text", "label"],
    "role": ["text", "label"],
}


@pytest.fixture
def upload(alice: User) -> Upload:
    return factories.upload(alice, CSV)


@pytest.fixture
def _all_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_queue, "SMALL_BYTES", 1)


def url(upload: Upload, action: str = "") -> str:
    return f"/datasets/uploads/{upload.pk}/{action}"


def send(browser: Client, *files: tuple[str, bytes], htmx: bool = False) -> tuple[int, str]:
    sent = [SimpleUploadedFile(name, content) for name, content in files]
    answer = browser.post("/datasets/new/", {"file": sent}, headers=HTMX if htmx else {})
    return answer.status_code, answer.content.decode()


# --- Choosing files ------------------------------------------------------------


def test_new_shows_the_limits(browser: Client) -> None:
    page = browser.get("/datasets/new/").content.decode()
    assert 'name="file"' in page
    assert "MB" in page


def test_new_stores_several_files_as_one_upload(browser: Client) -> None:
    status, _ = send(browser, ("a_train.csv", CSV), ("a_test.csv", CSV))
    assert status == 302
    found = Upload.objects.get()
    assert [part["split"] for part in found.files] == ["train", "test"]
    assert found.size == 2 * len(CSV)


def test_new_sends_htmx_to_the_columns(browser: Client) -> None:
    file = SimpleUploadedFile("a.csv", CSV)
    answer = browser.post("/datasets/new/", {"file": file}, headers=HTMX)
    assert answer["HX-Redirect"] == url(Upload.objects.get())


def test_new_without_a_file_is_refused(browser: Client) -> None:
    status, page = send(browser, htmx=True)
    assert (status, "Choose a file first." in page, "<html" in page) == (422, True, False)


def test_new_names_the_bad_one_of_several_files(browser: Client) -> None:
    status, page = send(browser, ("good.csv", CSV), ("bad.csv", b"%PDF-1.7"))
    assert status == 422
    assert "bad.csv: This is a PDF." in page
    assert not Upload.objects.exists()


def test_new_refuses_too_many_files(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_FILES", 1)
    status, page = send(browser, ("a.csv", CSV), ("b.csv", CSV))
    assert status == 422
    assert "Too many files: 2. The limit is 1 per upload." in page


# --- Columns and import --------------------------------------------------------


def test_upload_imports_with_the_chosen_columns(browser: Client, alice: User) -> None:
    found = factories.upload(alice, b"a|b|c\nhello|x|1\nbye||2\n")
    chosen = {"header": "names", "column": ["a", "b", "c"], "role": ["text", "label", "ignore"]}
    answer = browser.post(url(found), chosen | {"keep_unlabelled": "on", "separator": "bar"})
    dataset = Dataset.objects.get()
    assert answer["location"] == f"/datasets/{dataset.pk}/"
    assert (dataset.name, dataset.rows, dataset.unlabelled) == ("rows", 2, 1)
    assert dataset.extra_columns == []


def test_upload_without_a_text_column_is_refused(browser: Client, upload: Upload) -> None:
    answer = browser.post(url(upload), {"name": "x"})
    assert answer.status_code == 422
    assert "Choose a column as the text." in answer.content.decode()
    assert upload.path.is_file()


def test_upload_without_a_usable_row_is_refused(browser: Client, alice: User) -> None:
    found = factories.upload(alice, b"text,label\n,a\n ,b\n")
    answer = browser.post(url(found), CHOSEN)
    assert answer.status_code == 422
    assert "All 2 rows were rejected" in answer.content.decode()
    assert not Dataset.objects.exists()


def test_upload_saves_the_split_of_each_file(browser: Client, alice: User) -> None:
    files = [SimpleUploadedFile(name, CSV) for name in ("a.csv", "b.csv")]
    found = uploads.store_upload(owner=alice, files=files)
    browser.post(url(found), CHOSEN | {"split_of_0": "train", "split_of_1": "nonsense"})
    assert Dataset.objects.get().split_counts == {"train": 2}


@pytest.mark.usefixtures("_all_large")
@pytest.mark.django_db(transaction=True)
def test_a_large_upload_is_queued_once(
    browser: Client, upload: Upload, announced: list[int]
) -> None:
    for _ in range(2):
        answer = browser.post(url(upload), CHOSEN)
        assert answer.status_code in (200, 302)
    upload.refresh_from_db()
    assert upload.task is not None
    assert announced == [upload.task.pk]
    assert upload.state == UploadState.QUEUED
    page = browser.get(url(upload)).content.decode()
    assert ">x</h1>" in page
    assert "<form" in page  # it can be cancelled


def test_upload_shows_a_failed_import_as_it_was_tried(browser: Client, upload: Upload) -> None:
    options = ImportOptions("My name", ColumnMapping("label", "text"))
    factories.import_task(
        upload, state=TaskState.FAILED, error="No memory left.", options=options.to_json()
    )
    page = browser.get(url(upload)).content.decode()
    assert "No memory left." in page
    assert 'value="My name"' in page


def test_upload_that_is_done_leads_to_its_dataset(
    browser: Client, upload: Upload, alice: User
) -> None:
    dataset = factories.create(alice, [("one", "a")])
    factories.import_task(upload, state=TaskState.DONE)
    Upload.objects.update(dataset=dataset)
    assert browser.get(url(upload))["location"] == f"/datasets/{dataset.pk}/"
    Upload.objects.update(dataset=None)  # it was deleted
    assert browser.get(url(upload)).status_code == 404


# --- Progress ------------------------------------------------------------------


def test_progress_shows_rows_while_the_import_runs(browser: Client, upload: Upload) -> None:
    factories.import_task(upload, state=TaskState.RUNNING, done=12_345, total=24_690)
    page = browser.get(url(upload, "progress/")).content.decode()
    assert "12,345" in page
    assert "50" in page
    assert "<html" not in page


def test_progress_leads_to_the_dataset_when_done(
    browser: Client, upload: Upload, alice: User
) -> None:
    dataset = factories.create(alice, [("one", "a")])
    factories.import_task(upload, state=TaskState.DONE)
    Upload.objects.update(dataset=dataset)
    answer = browser.get(url(upload, "progress/"), headers=HTMX)
    assert answer["HX-Redirect"] == f"/datasets/{dataset.pk}/"
    assert "1 row imported." in browser.get(f"/datasets/{dataset.pk}/").content.decode()


def test_progress_leads_back_to_the_columns_when_it_failed(browser: Client, upload: Upload) -> None:
    factories.import_task(upload, state=TaskState.FAILED)
    assert browser.get(url(upload, "progress/"))["location"] == url(upload)


# --- Discarding ----------------------------------------------------------------


def test_discard_deletes_the_files(browser: Client, upload: Upload) -> None:
    assert browser.post(url(upload, "discard/"))["location"] == "/datasets/new/"
    assert not Upload.objects.exists()
    assert not upload.path.exists()


@pytest.mark.usefixtures("_all_large")
def test_discard_cancels_an_import(browser: Client, upload: Upload) -> None:
    browser.post(url(upload), CHOSEN)
    assert browser.post(url(upload, "discard/"))["location"] == "/datasets/"
    assert not Upload.objects.exists()
    assert not Dataset.objects.exists()


# --- All of them ---------------------------------------------------------------


def test_someone_elses_upload_is_not_there(bobs_browser: Client, upload: Upload) -> None:
    assert bobs_browser.get(url(upload)).status_code == 404
    assert bobs_browser.get(url(upload, "progress/")).status_code == 404
    assert bobs_browser.post(url(upload), CHOSEN).status_code == 404
    assert bobs_browser.post(url(upload, "discard/")).status_code == 404
    assert Upload.objects.filter(pk=upload.pk).exists()


def test_an_unknown_upload_is_not_there(browser: Client, db: None) -> None:
    assert browser.get(f"/datasets/uploads/{uuid.uuid4()}/").status_code == 404
    assert browser.get("/datasets/uploads/7/").status_code == 404


def test_upload_pages_refuse_other_methods(browser: Client, upload: Upload) -> None:
    assert browser.put("/datasets/new/").status_code == 405
    assert browser.delete(url(upload)).status_code == 405
    assert browser.post(url(upload, "progress/")).status_code == 405
    assert browser.get(url(upload, "discard/")).status_code == 405
