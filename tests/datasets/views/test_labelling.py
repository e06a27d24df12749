"""One text at a time with the keyboard, from a queue or from what has no label."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.datasets import hooks, services
from apps.datasets.models import Dataset
from apps.datasets.rows import queues
from apps.datasets.services import QueueEntry
from tests.datasets.factories import create, shown

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}


@pytest.fixture
def dataset(alice: User) -> Dataset:
    rows = [("one", "a"), ("two", ""), ("three", ""), ("four", "b", "test"), ("five", "b")]
    return create(alice, rows)


def act(browser: Client, dataset: Dataset, query: str = "", **sent: Any) -> str:
    answer = browser.post(f"/datasets/{dataset.pk}/label/{query}", sent, headers=HTMX)
    assert answer.status_code == 200, answer.content.decode()
    return answer.content.decode()


def bars(page: str) -> list[str]:
    return re.findall(r'data-label="([^"]*)"', page)


def test_labelling_page_shows_the_text_progress_and_keys(browser: Client, dataset: Dataset) -> None:
    page = browser.get(f"/datasets/{dataset.pk}/label/").content.decode()
    assert 'class="label-text wrap-anywhere" tabindex="0">two<' in page
    assert "3 of 5 labelled" in " ".join(page.split())
    assert bars(page) == ["b", "a"]  # the most frequent first
    assert "No classifier answers. Recent and frequent labels:" in page
    card = act(browser, dataset, index=1, action="label", label="a")
    assert "<html" not in card
    assert ">three<" in card
    card = act(browser, dataset, index=2, action="undo")
    assert ">two<" in card
    assert "Unlabelled" in card
    act(browser, dataset, index=1, action="label", label="new")
    card = act(browser, dataset, index=2, action="label", label="b")
    assert "All rows are labelled" in card
    assert [row[2] for row in shown(dataset)] == ["a", "new", "b", "b", "b"]


def test_skipping_comes_round_again(browser: Client, dataset: Dataset) -> None:
    assert ">three<" in act(browser, dataset, index=1, action="skip")
    assert ">two<" in act(browser, dataset, index=2, action="skip")
    dataset.refresh_from_db()
    assert dataset.version == 0


def test_a_queue_is_walked_in_its_order(browser: Client, dataset: Dataset) -> None:
    entries = [
        QueueEntry(4, "Probably wrong: 92 % for “a”", ("a",)),
        QueueEntry(0, "Uncertain", ("b", "a")),
        QueueEntry(4, "said twice"),
        QueueEntry(3, "a test row"),
        QueueEntry(99, "not available"),
    ]
    queue = services.create_queue(dataset, name="Likely errors", items=entries)
    assert (queue.items.count(), queue.left_out) == (2, 2)
    query = f"?queue={queue.pk}"
    page = browser.get(f"/datasets/{dataset.pk}/label/{query}").content.decode()
    for words in ("Likely errors", ">five<", "92 %", "0 of 2"):
        assert words in page
    assert bars(page)[0] == "a"
    card = act(browser, dataset, query, index=4, action="label", label="a")
    assert ">one<" in card
    assert bars(card)[0] == "b"  # its own suggestion first
    card = act(browser, dataset, query, index=0, action="undo")  # back to the row before
    assert ">five<" in card
    act(browser, dataset, query, index=4, action="keep")
    card = act(browser, dataset, query, index=0, action="skip")
    assert "Queue complete" in card
    assert "2 test rows were skipped" in card
    assert [row[2] for row in shown(dataset)] == ["a", "", "", "b", "b"]


def test_undo_takes_back_a_label_given_here_and_nothing_else(
    browser: Client, dataset: Dataset
) -> None:
    queue = services.create_queue(dataset, name="x", items=[QueueEntry(0), QueueEntry(4)])
    url = f"/datasets/{dataset.pk}/label/?queue={queue.pk}"
    for change in (
        lambda: services.set_split(dataset, [2], "test"),
        lambda: services.relabel_rows(dataset, [2], "elsewhere"),
    ):
        act(browser, dataset, f"?queue={queue.pk}", index=0, action="label", label="b")
        change()
        before = shown(dataset)
        answer = browser.post(url, {"action": "undo", "index": "4"}, headers=HTMX)
        assert answer.status_code == 422
        assert "Nothing to undo here" in answer.content.decode()
        assert shown(dataset) == before
        services.undo(dataset)
        services.undo(dataset)
        act(browser, dataset, f"?queue={queue.pk}", action="undo")  # undone there already


def test_undo_in_a_queue_goes_back_row_by_row_also_over_kept_and_skipped_ones(
    browser: Client, dataset: Dataset
) -> None:
    items = [QueueEntry(4), QueueEntry(0), QueueEntry(1)]
    queue = services.create_queue(dataset, name="x", items=items)
    query = f"?queue={queue.pk}"
    act(browser, dataset, query, index=4, action="label", label="a")
    act(browser, dataset, query, index=0, action="keep")
    assert "Queue complete" in act(browser, dataset, query, index=1, action="skip")
    assert ">two<" in act(browser, dataset, query, action="undo")
    assert ">one<" in act(browser, dataset, query, action="undo")
    assert shown(dataset)[4][2] == "a"
    card = act(browser, dataset, query, action="undo")
    assert ">five<" in card
    assert "0 of 3" in card
    assert 'value="undo" aria-label="Undo" disabled' in " ".join(
        card.split()
    )  # nothing is left to undo
    assert shown(dataset)[4][2] == "b"


def test_a_skipped_row_without_a_label_is_shown_again(browser: Client, dataset: Dataset) -> None:
    act(browser, dataset, index=1, action="label", label="a")
    card = act(browser, dataset, index=2, action="skip")
    assert '<input type="hidden" name="skipped" value="2">' in card
    assert ">three<" in act(browser, dataset, index=2, action="undo", skipped=2)
    assert shown(dataset)[1][2] == "a"  # skipping gave no label: none is taken back


def test_a_test_row_is_never_relabelled_by_a_queue(browser: Client, dataset: Dataset) -> None:
    """Also when it became one after the queue was made, and when a program insists."""
    items = [QueueEntry(0), QueueEntry(4)]
    queue = services.create_queue(dataset, name="x", items=items)
    services.set_split(dataset, [0], "test")
    card = queues.next_in_queue(queue)
    assert card is not None
    assert card.example.index == 4
    sent = {"index": 0, "action": "label", "label": "z"}
    url = f"/datasets/{dataset.pk}/label/?queue={queue.pk}"
    answer = browser.post(url, sent, headers=HTMX)
    assert answer.status_code == 422
    assert "test row" in answer.content.decode()
    assert shown(dataset)[0][2] == "a"


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"action": "label", "index": "1", "label": " "}, "Choose a label"),
        ({"action": "label", "label": "a"}, "Choose a row."),
        ({"action": "burn", "index": "1"}, "Choose a label"),
        ({"action": "undo"}, "Nothing to undo"),
        ({"action": "label", "index": "1", "label": "x" * 201}, "201 characters"),
    ],
)
def test_labelling_refuses_bad_input_with_a_sentence(
    browser: Client, dataset: Dataset, sent: dict[str, str], says: str
) -> None:
    answer = browser.post(f"/datasets/{dataset.pk}/label/", sent, headers=HTMX)
    assert answer.status_code == 422
    assert says in answer.content.decode()
    assert "two" in answer.content.decode()


def test_somebody_elses_queue_is_not_there(
    browser: Client, bobs_browser: Client, dataset: Dataset, bob: User
) -> None:
    queue = services.create_queue(dataset, name="x", items=[QueueEntry(0)])
    theirs = create(bob, [("x", "a")])
    for client in (browser, bobs_browser):
        answer = client.get(f"/datasets/{theirs.pk}/label/?queue={queue.pk}")
        assert answer.status_code == 404
    assert browser.put(f"/datasets/{dataset.pk}/label/").status_code == 405


def test_bars_show_what_the_classifier_gives(
    browser: Client, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def guess(found: Dataset, text: str) -> hooks.Guesses:
        assert (found.pk, text) == (dataset.pk, "two")
        return hooks.Guesses("Intents, version 3", (("b", 0.62), ("a", 0.17)))

    monkeypatch.setattr(hooks, "guess_providers", [guess])
    page = browser.get(f"/datasets/{dataset.pk}/label/").content.decode()
    assert bars(page) == ["b", "a"]
    assert "Likeliest labels: Intents, version 3" in page
    assert 'width="0.620"' in page


def test_bars_without_a_classifier_begin_with_the_labels_used_last(
    browser: Client, dataset: Dataset
) -> None:
    assert bars(act(browser, dataset, index=1, give="a")) == ["a", "b"]


def test_a_deleted_row_comes_back_with_undo(browser: Client, dataset: Dataset) -> None:
    card = act(browser, dataset, index=1, action="delete")
    assert ">three<" in card
    assert "Row 2 deleted" in card
    assert len(shown(dataset)) == 4
    assert ">two<" in act(browser, dataset, index=2, action="undo")
    assert len(shown(dataset)) == 5


def test_none_of_these_takes_the_label_away_in_a_queue(browser: Client, dataset: Dataset) -> None:
    queue = services.create_queue(dataset, name="x", items=[QueueEntry(0), QueueEntry(4)])
    query = f"?queue={queue.pk}"
    assert ">five<" in act(browser, dataset, query, index=0, action="none")
    assert shown(dataset)[0][2] == ""
    assert ">one<" in act(browser, dataset, query, index=4, action="undo")
    assert shown(dataset)[0][2] == "a"


def test_kept_columns_stand_above_the_text(browser: Client, dataset: Dataset) -> None:
    dataset.examples.filter(index=1).update(meta={"source": "crowd 2"})
    page = browser.get(f"/datasets/{dataset.pk}/label/").content.decode()
    assert "source: crowd 2" in page
