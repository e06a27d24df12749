"""Deletes a dataset: hidden at once, removed from the database in pieces."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.datasets.models import (
    Change,
    Dataset,
    DatasetState,
    Example,
    NearDuplicate,
    QueueItem,
    Rejection,
    Upload,
)

SMALL_ROWS = 10_000
ABANDONED_AFTER = timedelta(days=1)  # longer than any import takes
# What is deleted before its dataset is: there may be millions of them. A piece is a transaction.
PARTS: dict[type[models.Model], str] = {
    **dict.fromkeys((Example, Rejection, NearDuplicate), "dataset"),
    Change: "revision__dataset",
    QueueItem: "queue__dataset",
}
PIECE_ROWS = 900  # SQLite's older limit is 999 parameters


def remove_dataset(dataset: Dataset) -> bool:
    """Delete a dataset. False if it is only hidden yet and a worker has to finish."""
    Dataset.objects.filter(pk=dataset.pk).update(state=DatasetState.DELETING)
    if dataset.rows > SMALL_ROWS:
        return False
    remove_in_pieces(dataset)
    return True


def finish_removal(dataset_id: int) -> None:
    """Delete what is left of a dataset that is hidden."""
    unfinished = Dataset.objects.exclude(state=DatasetState.READY)
    dataset = unfinished.filter(pk=dataset_id).first()
    if dataset is not None:
        remove_in_pieces(dataset)


def unfinished_removals() -> list[int]:
    """Return datasets that are being deleted, or whose import ended with its process."""
    deleting = Q(state=DatasetState.DELETING)
    importing = Upload.objects.exclude(dataset=None).values("dataset")
    left = Q(state=DatasetState.IMPORTING, created__lt=timezone.now() - ABANDONED_AFTER)
    found = Dataset.objects.filter(deleting | left & ~Q(pk__in=importing))
    return list(found.values_list("pk", flat=True))


def remove_in_pieces(dataset: Dataset, tick: Callable[[], None] = lambda: None) -> None:
    """Delete a dataset of any size in short transactions, calling `tick` after each."""
    for model, of in PARTS.items():
        rows: models.QuerySet[Any] = model._default_manager.filter(**{of: dataset}).order_by("pk")
        while keys := list(rows.values_list("pk", flat=True)[:PIECE_ROWS]):
            model._default_manager.filter(pk__in=keys).delete()
            tick()
    dataset.delete()
