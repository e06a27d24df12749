"""Removal of datasets: small ones at once, large ones hidden and finished by a worker."""

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError

from apps.datasets import services
from apps.datasets.models import (
    Change,
    Dataset,
    DatasetState,
    Example,
    NearDuplicate,
    QueueItem,
    Rejection,
    TaskKind,
)
from apps.datasets.rows import removal
from apps.datasets.services import NearPair, QueueEntry
from apps.files import ExampleRow, RejectedRow
from apps.work import services as work
from apps.work.models import Task, TaskState
from tests.datasets.factories import change_task, create, create_many, work_on

pytestmark = pytest.mark.django_db

ROWS = (Example, Rejection, NearDuplicate, Change, QueueItem)


@pytest.fixture
def dataset(alice: User) -> Dataset:
    """A dataset with something in each of its tables."""
    rows = [ExampleRow("one", "a"), ExampleRow("two", "b"), RejectedRow(3, "text", "Empty.")]
    dataset = services.create_dataset(owner=alice, name="Full", rows=rows, origin="tests")
    services.relabel_rows(dataset, [0], "c")
    services.create_queue(dataset, name="x", items=[QueueEntry(0), QueueEntry(1)])
    pairs = [NearPair(0, 1, 0.99)]
    services.store_near_duplicates(services.snapshot(dataset), pairs, model="m", threshold=0.9)
    return dataset


def test_remove_dataset_leaves_no_row_and_no_other_dataset_touched(
    dataset: Dataset, alice: User
) -> None:
    assert all(model.objects.exists() for model in ROWS)
    other = create(alice, [("kept", "a")])
    removal.remove_dataset(dataset)
    assert not Task.objects.exists()
    assert list(Dataset.objects.all()) == [other]
    assert [model.objects.count() for model in ROWS] == [1, 0, 0, 0, 0]


def test_remove_dataset_hides_a_large_one_for_a_worker(
    dataset: Dataset, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "SMALL_ROWS", 1)
    removal.remove_dataset(dataset)
    assert not Dataset.objects.owned_by(alice).exists()
    assert Dataset.objects.get().state == DatasetState.DELETING
    work_on(TaskKind.REMOVAL, dataset)
    assert not Dataset.objects.exists()
    assert not Task.objects.exists()


def test_finish_removal_keeps_a_dataset_that_is_ready(dataset: Dataset) -> None:
    work.enqueue(TaskKind.REMOVAL, dataset.pk)
    work.enqueue(TaskKind.REMOVAL, dataset.pk + 1)
    for task in Task.objects.all():
        work.run(task.pk)
    assert Dataset.objects.filter(pk=dataset.pk).exists()


def test_finish_removal_is_tried_again_after_an_error_of_the_database(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*args: object) -> None:
        raise OperationalError("database is locked")

    with monkeypatch.context() as patch:
        patch.setattr(removal, "remove_in_pieces", locked)
        removal.remove_dataset(dataset)
    task = Task.objects.get()
    assert (task.state, task.lease) == (TaskState.QUEUED, None)
    work_on(TaskKind.REMOVAL, dataset)
    assert not Dataset.objects.exists()


def test_remove_dataset_ends_a_change_of_its_rows(dataset: Dataset) -> None:
    change_task(dataset)
    removal.remove_dataset(dataset)
    assert not Task.objects.exists()


def test_remove_in_pieces_reports_every_piece(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "PIECE_ROWS", 7)
    ticks: list[int] = []
    removal.remove_in_pieces(create_many(alice, 30), lambda: ticks.append(Example.objects.count()))
    assert ticks == [23, 16, 9, 2, 0]
