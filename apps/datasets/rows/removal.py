"""Deletes a dataset: hidden at once, removed from the database in pieces."""

import logging
from collections.abc import Callable
from typing import Any

from django.db import DatabaseError, models, transaction

from apps.datasets.hooks import NEAR_DUPLICATE_SEARCH
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
from apps.work import services as work
from apps.work.services import HeldTask

log = logging.getLogger(__name__)

SMALL_ROWS = 10_000
# What is deleted before its dataset is: there may be millions of them. A piece is a transaction.
PARTS: dict[type[models.Model], str] = {
    **dict.fromkeys((Example, Rejection, NearDuplicate), "dataset"),
    Change: "revision__dataset",
    QueueItem: "queue__dataset",
}
PIECE_ROWS = 900  # SQLite's older limit is 999 parameters


def remove_dataset(dataset: Dataset) -> None:
    """Delete a dataset: a small one at once, a large one is hidden and a worker deletes it."""
    if dataset.rows > SMALL_ROWS:
        queue_removal(dataset)
        return
    with transaction.atomic():
        _hide(dataset)
        held = work.start_here(TaskKind.REMOVAL, dataset.pk, owner=dataset.owner)
    if held is not None:
        finish_removal(held)


@transaction.atomic
def queue_removal(dataset: Dataset) -> None:
    """Hide a dataset; a worker deletes it."""
    _hide(dataset)
    work.enqueue(TaskKind.REMOVAL, dataset.pk, owner=dataset.owner)


def _hide(dataset: Dataset) -> None:
    Dataset.objects.filter(pk=dataset.pk).update(state=DatasetState.DELETING)
    for kind in (TaskKind.CHANGE, NEAR_DUPLICATE_SEARCH):
        work.discard(kind, [dataset.pk])


def finish_removal(held: HeldTask) -> None:
    """Delete what is left of a dataset that is hidden: the handler of `TaskKind.REMOVAL`.

    Tried again until it works: nobody sees that it failed.
    """
    try:
        unfinished = Dataset.objects.exclude(state=DatasetState.READY)
        dataset = unfinished.filter(pk=held.subject).first()
        if dataset is not None:
            remove_in_pieces(dataset, held.renew)
        held.task.delete()
    except DatabaseError:
        log.exception("Dataset %s could not be deleted. It is tried again.", held.subject)
        held.release()


def remove_in_pieces(dataset: Dataset, tick: Callable[[], None] = lambda: None) -> None:
    """Delete a dataset of any size in short transactions, calling `tick` after each."""
    for model, of in PARTS.items():
        rows: models.QuerySet[Any] = model._default_manager.filter(**{of: dataset}).order_by("pk")
        while keys := list(rows.values_list("pk", flat=True)[:PIECE_ROWS]):
            model._default_manager.filter(pk__in=keys).delete()
            tick()
    dataset.delete()
