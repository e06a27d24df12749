"""Queues of rows to review: their order, test rows, undo."""

import pytest
from django.contrib.auth.models import User

from apps.datasets import services
from apps.datasets.models import Dataset, Queue
from apps.datasets.rows import queues
from apps.datasets.rows.queues import QueueEntry
from tests.datasets.factories import create, shown

pytestmark = pytest.mark.django_db


@pytest.fixture
def dataset(alice: User) -> Dataset:
    rows = [("one", "a"), ("two", ""), ("three", "b", "test"), ("four", "b"), ("five", "a")]
    return create(alice, rows)


@pytest.fixture
def queue(dataset: Dataset) -> Queue:
    items = [QueueEntry(3, "unsure", ("a",)), QueueEntry(0), QueueEntry(4)]
    return services.create_queue(dataset, name="Review", items=items)


def next_index(queue: Queue, at: int | None = None) -> int | None:
    card = queues.next_in_queue(queue, at=at)
    return None if card is None else card.example.index


def test_create_queue_leaves_out_test_rows_and_rows_that_do_not_exist(dataset: Dataset) -> None:
    items = [QueueEntry(2), QueueEntry(9), QueueEntry(1), QueueEntry(1, "twice")]
    queue = services.create_queue(dataset, name="x" * 300, items=items)
    assert list(queue.items.values_list("place", "index", "reason")) == [(0, 1, "")]
    assert (queue.left_out, len(queue.name)) == (2, 200)


def test_create_queue_bounds_reasons_and_suggestions(dataset: Dataset) -> None:
    entry = QueueEntry(0, "r" * 500, tuple(f"label {n}" for n in range(20)))
    item = services.create_queue(dataset, name="x", items=[entry]).items.get()
    assert (len(item.reason), len(item.suggested)) == (300, 9)


def test_create_queue_refuses_too_many_rows(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "MAX_ITEMS", 2)
    with pytest.raises(ValueError, match="The limit is 2 per queue"):
        services.create_queue(dataset, name="x", items=[QueueEntry(n) for n in range(3)])
    assert not Queue.objects.exists()


def test_next_in_queue_advances_in_order_and_counts(queue: Queue) -> None:
    card = queues.next_in_queue(queue)
    assert card is not None
    assert (card.example.text, card.reason, card.suggested) == ("four", "unsure", ["a"])
    assert (card.done, card.total) == (0, 3)
    queues.mark_seen(queue, 3)
    card = queues.next_in_queue(queue)
    assert card is not None
    assert (card.example.index, card.done) == (0, 1)


def test_next_in_queue_shows_a_row_by_its_index(queue: Queue) -> None:
    assert next_index(queue, at=4) == 4
    assert next_index(queue, at=1) is None


def test_next_in_queue_skips_rows_deleted_or_moved_to_test(queue: Queue, dataset: Dataset) -> None:
    services.delete_rows(dataset, [3])
    services.set_split(dataset, [0], "test")
    assert next_index(queue) == 4
    queues.mark_seen(queue, 4)
    assert next_index(queue) is None


@pytest.mark.parametrize(("index", "allowed"), [(0, True), (1, False), (2, False), (9, False)])
def test_may_relabel_only_rows_of_the_queue(queue: Queue, index: int, allowed: bool) -> None:
    assert queues.may_relabel(queue, index) is allowed


def test_step_back_undoes_labels_and_reviews_in_reverse(
    queue: Queue, dataset: Dataset, alice: User
) -> None:
    revision = services.relabel_rows(dataset, [3], "c", by=alice)
    queues.mark_seen(queue, 3, revision=revision)
    queues.mark_seen(queue, 0)
    assert queues.step_back(queue, by=alice) == 0
    assert shown(dataset)[3][2] == "c"
    assert queues.step_back(queue, by=alice) == 3
    assert shown(dataset)[3][2] == "b"
    assert queues.step_back(queue, by=alice) is None


def test_step_back_leaves_changes_made_elsewhere(
    queue: Queue, dataset: Dataset, alice: User
) -> None:
    queues.mark_seen(queue, 3, revision=services.relabel_rows(dataset, [3], "c"))
    services.relabel_rows(dataset, [1], "elsewhere")
    before = shown(dataset)
    assert queues.step_back(queue, by=alice) is None
    assert shown(dataset) == before
    services.undo(dataset)
    assert queues.step_back(queue, by=alice) == 3


def test_next_unlabelled_starts_again_after_the_last_row(dataset: Dataset) -> None:
    services.relabel_rows(dataset, [3], "")
    indices = [queues.next_unlabelled(dataset, after=after) for after in (-1, 1, 3)]
    assert [card.example.index for card in indices if card] == [1, 3, 1]
    card = queues.next_unlabelled(dataset)
    assert card is not None
    assert (card.done, card.total) == (3, 5)


def test_next_unlabelled_shows_a_row_by_its_index(dataset: Dataset) -> None:
    card = queues.next_unlabelled(dataset, at=0)
    assert card is not None
    assert card.example.text == "one"
    assert queues.next_unlabelled(dataset, at=77) is None


def test_next_unlabelled_of_a_labelled_dataset_is_none(alice: User) -> None:
    assert queues.next_unlabelled(create(alice, [("one", "a")])) is None
