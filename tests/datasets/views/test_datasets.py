"""Upload, preview, import and browsing in the browser."""

from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import AsyncClient, Client
from pytest_django import DjangoAssertNumQueries, Settings

from apps.datasets.models import Dataset, Upload
from apps.datasets.services import create_dataset
from apps.files import ExampleRow

pytestmark = pytest.mark.django_db(transaction=True)

CSV = "Frage;Art;split\nWo ist meine Karte?;karte;train\nHallo;gruß;test\n;gruß;train\n".encode(
    "cp1252"
)


def upload(browser: Client, content: bytes = CSV, name: str = "daten.csv") -> Upload:
    answer = browser.post("/datasets/new/", {"file": SimpleUploadedFile(name, content)})
    found = Upload.objects.get()
    assert (answer.status_code, answer["location"]) == (302, f"/datasets/uploads/{found.pk}/")
    return found


def create(owner: User, count: int = 120) -> Dataset:
    rows = [ExampleRow(f"text {n}", f"label {n % 3}") for n in range(count)]
    return create_dataset(owner=owner, name="Many", rows=rows, origin="tests")


def test_upload_is_previewed_and_imported(browser: Client) -> None:
    found = upload(browser)
    url = f"/datasets/uploads/{found.pk}/"
    page = browser.get(url).content.decode()
    assert "separated by semicolon" in page
    assert "Windows-1252" in page
    assert "gruß" in page
    assert "No text, left out" in page
    columns = {"column": ["Frage", "Art", "split"], "role": ["text", "label", "split"]}
    answer = browser.post(url, {"header": "names", "name": "Fragen"} | columns)
    dataset = Dataset.objects.get()
    assert answer["location"] == f"/datasets/{dataset.pk}/"
    assert (dataset.name, dataset.rows, dataset.test_rows) == ("Fragen", 2, 1)
    assert not Upload.objects.exists()
    assert not found.path.exists()
    page = browser.get(f"/datasets/{dataset.pk}/").content.decode()
    for words in ("2 rows imported.", "Wo ist meine Karte?", "gruß", "The text is empty."):
        assert words in page
    assert "Fragen" in browser.get("/datasets/").content.decode()


def test_the_preview_follows_the_choice(browser: Client) -> None:
    found = upload(browser)
    url = f"/datasets/uploads/{found.pk}/"
    query = {"header": "names", "name": "x", "column": ["Art", "Art"], "role": ["text", "label"]}
    fragment = browser.get(url, query, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in fragment
    assert "Choose different columns for text and label." in fragment
    assert "disabled" in fragment
    data = query | {"header": "data"}
    fragment = browser.get(url, data, headers={"HX-Request": "true"}).content.decode()
    assert "column 1" in fragment
    assert browser.post(url, query).status_code == 422
    assert not Dataset.objects.exists()


def test_the_file_gets_a_name_of_ours(browser: Client, settings: Settings) -> None:
    found = upload(browser, name="..\\..\\evil\u202e.csv")
    assert found.path.parent == Path(settings.UPLOADS_DIR)
    assert found.path.name == str(found.pk)
    assert found.path.stat().st_mode & 0o777 == 0o600
    browser.post(f"/datasets/uploads/{found.pk}/discard/")
    assert not found.path.exists()


def test_a_bad_file_is_said_at_once(browser: Client, settings: Settings) -> None:
    file = SimpleUploadedFile("a.xlsx", b"PK\x03\x04")
    answer = browser.post("/datasets/new/", {"file": file}, headers={"HX-Request": "true"})
    assert answer.status_code == 422
    assert "Excel" in answer.content.decode()
    assert browser.post("/datasets/new/").status_code == 422
    settings.UPLOAD_LIMIT_BYTES = 10
    answer = browser.post("/datasets/new/", {"file": SimpleUploadedFile("a.csv", CSV)})
    assert answer.status_code == 422
    assert "larger than" in answer.content.decode()
    assert not Upload.objects.exists()


def test_the_example_can_be_trained_on(browser: Client) -> None:
    answer = browser.post("/datasets/example/")
    dataset = Dataset.objects.get()
    assert answer["location"] == f"/classify/new/?dataset={dataset.pk}"
    assert (dataset.rows, len(dataset.label_counts), dataset.rejected_count) == (400, 10, 0)
    assert "CC BY 4.0" in dataset.origin


def test_rows_are_paged_by_cursor_and_filtered(browser: Client, alice: User) -> None:
    dataset = create(alice)
    url = f"/datasets/{dataset.pk}/examples/"
    page = browser.get(f"{url}?after=99").content.decode()
    assert "text 119" in page
    assert "Rows 101 to 120" in page
    page = browser.get(f"{url}?before=100").content.decode()
    assert "Rows 51 to 100" in page
    page = browser.get(f"{url}?label=label+1").content.decode()
    assert "text 4" in page
    assert "text 3<" not in page
    page = browser.get(f"{url}?q=TEXT+11").content.decode()
    assert page.count("text 11") == 11
    for query in ("after=x&label=no", "after=9999999", "issue=no&split=no", "q=%00", "before=1.2"):
        assert browser.get(f"{url}?{query}").status_code == 200


def test_dataset_pages_hide_datasets_of_others(
    bobs_browser: Client, browser: Client, alice: User
) -> None:
    found, dataset = upload(browser), create(alice)
    for path in (f"uploads/{found.pk}/", f"{dataset.pk}/", f"{dataset.pk}/examples/"):
        assert bobs_browser.get(f"/datasets/{path}").status_code == 404
    for path in (f"uploads/{found.pk}/", f"uploads/{found.pk}/discard/", f"{dataset.pk}/delete/"):
        assert bobs_browser.post(f"/datasets/{path}").status_code == 404
    assert bobs_browser.get(f"/datasets/{dataset.pk}/export/csv/").status_code == 404


def test_an_upload_whose_file_is_gone_is_not_there(browser: Client) -> None:
    found = upload(browser)
    found.path.unlink()
    assert browser.get(f"/datasets/uploads/{found.pk}/").status_code == 404


def test_dataset_pages_refuse_other_methods(browser: Client, alice: User) -> None:
    dataset = create(alice, 3)
    assert browser.get(f"/datasets/{dataset.pk}/delete/").status_code == 405
    assert browser.get("/datasets/example/").status_code == 405
    assert browser.post(f"/datasets/{dataset.pk}/").status_code == 405


def test_delete(browser: Client, alice: User) -> None:
    dataset = create(alice, 3)
    answer = browser.post(f"/datasets/{dataset.pk}/delete/", headers={"HX-Request": "true"})
    assert answer["HX-Redirect"] == "/datasets/"
    assert not Dataset.objects.exists()


def test_export_is_streamed(alice: User) -> None:
    dataset = create(alice, 2500)

    async def pieces() -> list[bytes]:
        client = AsyncClient()
        await client.aforce_login(alice)
        answer = await client.get(f"/datasets/{dataset.pk}/export/jsonl/")
        assert answer["Content-Disposition"] == 'attachment; filename="Many.jsonl"'
        return [piece async for piece in answer.streaming_content]

    found = async_to_sync(pieces)()
    assert len(found) == 3
    assert b"".join(found).count(b"\n") == 2500


def test_pages_ask_the_same_number_of_queries(
    browser: Client, alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for count in (3, 150):
        dataset = create(alice, count)
        with django_assert_num_queries(13):
            browser.get(f"/datasets/{dataset.pk}/")
        with django_assert_num_queries(11):  # the report is kept
            browser.get(f"/datasets/{dataset.pk}/")
        with django_assert_num_queries(8):
            browser.get("/datasets/")
