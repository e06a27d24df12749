"""Deleting a dataset: out of sight at once, out of the database in pieces."""

from apps.datasets.importing import remove_in_pieces
from apps.datasets.models import Dataset, DatasetState

SMALL_ROWS = 10_000


def remove(dataset: Dataset) -> bool:
    """Deletes a dataset; True where that is done, False where a worker has yet to finish it."""
    Dataset.objects.filter(pk=dataset.pk).update(state=DatasetState.DELETING)
    if dataset.rows > SMALL_ROWS:
        return False
    dataset.delete()
    return True


def finish(dataset_id: int) -> None:
    dataset = Dataset.objects.filter(pk=dataset_id, state=DatasetState.DELETING).first()
    if dataset is not None:
        remove_in_pieces(dataset)


def unfinished() -> list[int]:
    going = Dataset.objects.filter(state=DatasetState.DELETING)
    return list(going.values_list("pk", flat=True))
