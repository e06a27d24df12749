"""Changing rows in the browser, and the report, history and Near-duplicates beside them."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.datasets import hooks, near_duplicates, services
from apps.datasets.models import Dataset
from apps.datasets.services import NearPair
from apps.work.models import Task
from tests.datasets.factories import create, create_many, shown

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def dataset(alice: User) -> Dataset:
    return create(alice, [("one", "a"), ("two", "b", "test"), ("three", ""), ("ONE", "A")])


def labels(dataset: Dataset) -> list[str]:
    return [label for *_, label, _ in shown(dataset)]


def test_dataset_page_shows_rows_and_what_is_wrong_with_them(
    browser: Client, dataset: Dataset
) -> None:
    page = browser.get(f"/datasets/{dataset.pk}/").content.decode()
    for words in ("Unlabelled", "differ only in case or spacing", "Duplicates", "Hold out 20%"):
        assert (words in page) == (words != "Hold out 20%")  # it has a test split
    url = f"/datasets/{dataset.pk}/examples/2/label/"
    answer = browser.post(url, {"label": " new  one "}, headers={"HX-Request": "true"})
    assert answer["HX-Trigger"] == "dataset-changed"
    assert 'value="new one"' in answer.content.decode()
    summary = browser.get(f"/datasets/{dataset.pk}/summary/").content.decode()
    assert "to “new one”" in summary
    assert 'hx-swap-oob="innerHTML:#label-list"' in summary
    answer = browser.post(f"/datasets/{dataset.pk}/undo/", {"next": f"/datasets/{dataset.pk}/?q=x"})
    assert answer["location"] == f"/datasets/{dataset.pk}/?q=x"
    assert labels(dataset) == ["a", "b", "", "A"]


def test_a_bad_label_is_said_in_its_row(browser: Client, dataset: Dataset) -> None:
    answer = browser.post(f"/datasets/{dataset.pk}/examples/0/label/", {"label": "x" * 300})
    assert answer.status_code == 422
    assert "300 characters" in answer.content.decode()
    assert browser.post(f"/datasets/{dataset.pk}/examples/99/label/").status_code == 404


def test_ticked_rows(browser: Client, dataset: Dataset) -> None:
    url = f"/datasets/{dataset.pk}/edit/"
    browser.post(url, {"row": ["0", "2"], "action": "label", "to_label": "c"})
    assert labels(dataset) == ["c", "b", "c", "A"]
    browser.post(url, {"row": ["0"], "action": "split", "to_split": "train"})
    assert shown(dataset)[0][3] == "train"
    answer = browser.post(url, {"row": ["0", "1"], "action": "delete"}, follow=True)
    assert "2 rows deleted" in answer.content.decode()
    assert len(labels(dataset)) == 2


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"action": "delete"}, "Select at least one row."),
        ({"row": "x", "action": "delete"}, "Select at least one row."),
        ({"row": "0", "action": "burn"}, "Choose an action"),
        ({"row": "0", "action": "split", "to_split": "tset"}, "is not a valid split"),
        ({"row": "0", "action": "label", "to_label": "x" * 201}, "201 characters"),
        ({"row": "0", "action": "label", "to_label": "a"}, "Nothing to change."),
    ],
)
def test_a_bad_wish_changes_nothing(
    browser: Client, dataset: Dataset, sent: dict[str, str], says: str
) -> None:
    answer = browser.post(f"/datasets/{dataset.pk}/edit/", sent, follow=True)
    assert says in answer.content.decode()
    dataset.refresh_from_db()
    assert (dataset.version, labels(dataset)) == (0, ["a", "b", "", "A"])


def test_undo_does_not_redirect_to_another_site(browser: Client, dataset: Dataset) -> None:
    answer = browser.post(f"/datasets/{dataset.pk}/undo/", {"next": "https://evil.example/"})
    assert answer["location"] == f"/datasets/{dataset.pk}/"


def test_adding(browser: Client, dataset: Dataset) -> None:
    url = f"/datasets/{dataset.pk}/add/"
    browser.post(url, {"text": "four\r\n\r\nfive", "lines": "on", "label": "c", "split": "train"})
    browser.post(url, {"text": "two\r\nlines", "label": ""})
    assert [row[1:] for row in shown(dataset)[4:]] == [
        ("four", "c", "train"),
        ("five", "c", "train"),
        ("two\nlines", "", ""),
    ]
    answer = browser.post(url, {"text": "  ", "label": "c"}, follow=True)
    assert "The text is empty" in answer.content.decode()


def test_merging_deduplicating_and_splitting(browser: Client, dataset: Dataset) -> None:
    browser.post(f"/datasets/{dataset.pk}/merge/", {"label": ["a", "A"], "into": "a"})
    assert labels(dataset) == ["a", "b", "", "a"]
    browser.post(f"/datasets/{dataset.pk}/deduplicate/")
    assert labels(dataset) == ["a", "b", ""]
    answer = browser.post(f"/datasets/{dataset.pk}/split/", follow=True)
    assert "Each label has only one text" in answer.content.decode()
    history = browser.get(f"/datasets/{dataset.pk}/history/").content.decode()
    assert "“A” merged into “a” (1 row)" in history
    assert "Imported from tests" in history


def test_near_copies_side_by_side(browser: Client, dataset: Dataset) -> None:
    url = f"/datasets/{dataset.pk}/near/"
    assert "Not checked yet" in browser.get(url).content.decode()
    services.store_near_duplicates(
        services.snapshot(dataset),
        [NearPair(1, 0, 0.984), NearPair(1, 2, 0.97)],
        model="mini",
        threshold=0.97,
    )
    _, _, page = browser.get(url).content.decode().partition('class="pairs"')
    assert "0.984" in page
    assert page.index("two") < page.index("one")
    services.delete_rows(dataset, [2])
    assert "three" not in browser.get(url).content.decode()
    assert "checked at version 0" in browser.get(f"/datasets/{dataset.pk}/").content.decode()


def test_looking_for_near_copies(
    browser: Client, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Find near-duplicates" not in browser.get(f"/datasets/{dataset.pk}/").content.decode()
    browser.post(f"/datasets/{dataset.pk}/near/")
    monkeypatch.setattr(near_duplicates, "is_search_available", lambda: True)
    assert "Find near-duplicates" in browser.get(f"/datasets/{dataset.pk}/").content.decode()
    browser.post(f"/datasets/{dataset.pk}/near/")
    browser.post(f"/datasets/{dataset.pk}/near/")  # one is active
    task = Task.objects.get(kind=hooks.NEAR_DUPLICATE_SEARCH, subject=dataset.pk)
    Task.objects.update(done=3, total=4)
    for page in ("", "near/"):
        assert "3 of 4 texts" in browser.get(f"/datasets/{dataset.pk}/{page}").content.decode()
    Task.objects.filter(pk=task.pk).update(state="failed", error="The server is gone.")
    for page in ("", "near/"):
        shown = browser.get(f"/datasets/{dataset.pk}/{page}").content.decode()
        assert "The server is gone." in shown
        assert "Find near-duplicates" in shown


def test_row_pages_hide_datasets_of_others(bobs_browser: Client, dataset: Dataset) -> None:
    for path in ("summary", "near", "history", "label", "rejected", "examples"):
        assert bobs_browser.get(f"/datasets/{dataset.pk}/{path}/").status_code == 404
    paths = ("edit", "add", "merge", "deduplicate", "split", "undo", "near", "label")
    for path in (*paths, "examples/0/label"):
        assert bobs_browser.post(f"/datasets/{dataset.pk}/{path}/").status_code == 404
    assert dataset.revisions.count() == 0


def test_row_pages_refuse_other_methods(browser: Client, dataset: Dataset) -> None:
    for path in ("edit", "add", "merge", "deduplicate", "split", "undo", "examples/0/label"):
        assert browser.get(f"/datasets/{dataset.pk}/{path}/").status_code == 405
    for path in ("summary", "history", "rejected", "examples"):
        assert browser.post(f"/datasets/{dataset.pk}/{path}/").status_code == 405


def test_what_a_file_says_is_shown_as_text(browser: Client, alice: User) -> None:
    nasty = "<script>alert(1)</script>"
    dataset = create(alice, [(nasty, nasty), (nasty.upper(), nasty.upper())], name=nasty)
    services.relabel_rows(dataset, [0], f"{nasty}2")
    for path in ("", "summary/", "history/", "label/", "examples/"):
        assert "<script>alert" not in browser.get(f"/datasets/{dataset.pk}/{path}").content.decode()


def test_a_page_asks_as_much_of_many_rows_as_of_few(
    browser: Client, alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for dataset in (create_many(alice, 10), create_many(alice, 3_000, labels=150)):
        browser.get(f"/datasets/{dataset.pk}/")
        for query in ("", "?label=label+1", "?issue=duplicate", "?q=text&after=5", "?split=none"):
            with django_assert_num_queries(11):
                browser.get(f"/datasets/{dataset.pk}/{query}")
        with django_assert_num_queries(4):
            browser.get(f"/datasets/{dataset.pk}/examples/?after=3")
        services.relabel_rows(dataset, [1], "label 2")
        browser.get(f"/datasets/{dataset.pk}/summary/")
        with django_assert_num_queries(17):
            browser.post(f"/datasets/{dataset.pk}/examples/1/label/", {"label": "label 0"})
