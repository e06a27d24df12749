"""Deleting a dataset: out of sight at once, out of the database in pieces."""

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from apps.datasets.imports.writer import remove_in_pieces
from apps.datasets.models import Dataset, DatasetState, Upload

SMALL_ROWS = 10_000
LEFT_AFTER = timedelta(days=1)  # longer than rows take to come in


def remove(dataset: Dataset) -> bool:
    """Deletes a dataset; True where that is done, False where a worker has yet to finish it."""
    Dataset.objects.filter(pk=dataset.pk).update(state=DatasetState.DELETING)
    if dataset.rows > SMALL_ROWS:
        return False
    remove_in_pieces(dataset)
    return True


def finish(dataset_id: int) -> None:
    unfinished = Dataset.objects.exclude(state=DatasetState.READY)
    dataset = unfinished.filter(pk=dataset_id).first()
    if dataset is not None:
        remove_in_pieces(dataset)


def unfinished() -> list[int]:
    """Those that are being deleted, and those whose import ended with its process."""
    going = Q(state=DatasetState.DELETING)
    importing = Upload.objects.exclude(dataset=None).values("dataset")
    left = Q(state=DatasetState.IMPORTING, created__lt=timezone.now() - LEFT_AFTER)
    found = Dataset.objects.filter(going | left & ~Q(pk__in=importing))
    return list(found.values_list("pk", flat=True))
