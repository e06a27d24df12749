"""The search for near-duplicates: a task of the room that has the vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from django.db import transaction

from apps.datasets.hooks import NEAR_DUPLICATE_SEARCH
from apps.datasets.models import Dataset, Example, NearDuplicate
from apps.datasets.rows.history import SnapshotRef
from apps.work import services as work
from apps.work.models import TaskState


@dataclass(frozen=True, slots=True)
class NearPair:
    """Two rows by their index; `index` is the test row if one of them is."""

    index: int
    other_index: int
    cosine: float


@dataclass(frozen=True, slots=True)
class PairRows:
    """Two rows side by side."""

    row: Example
    other: Example
    cosine: float

    @property
    def both(self) -> tuple[Example, Example]:
        return self.row, self.other

    @property
    def differ(self) -> bool:
        """Their labels differ: one of them may be wrong."""
        return self.row.label != self.other.label


class SearchStatus(TypedDict, total=False):
    """A search of a dataset; pages, API and `Dataset.near` hold it."""

    state: Literal["running", "failed", "done"]
    done: int
    """Texts embedded, of `total`, while it runs."""
    total: int
    error: str
    """Of one that failed."""
    model: str
    """Of one that is done, like those that follow."""
    version: int
    found: int
    threshold: float


def is_search_available() -> bool:
    """Return True if a room with vectors has registered a handler for the search."""
    return work.is_registered(NEAR_DUPLICATE_SEARCH)


def start_search(dataset: Dataset) -> bool:
    """Queue a search; False if one is active or no handler is registered."""
    return (
        is_search_available()
        and work.enqueue(NEAR_DUPLICATE_SEARCH, dataset.pk, owner=dataset.owner) is not None
    )


def search_status(dataset: Dataset) -> SearchStatus:
    """Return the state of the last search; {} before the first."""
    task = work.find(NEAR_DUPLICATE_SEARCH, dataset.pk)
    if task is not None and task.is_active:
        return {"state": "running", "done": task.done, "total": task.total}
    if task is not None and task.state == TaskState.FAILED:
        return {"state": "failed", "error": task.error}
    found: SearchStatus = dataset.near
    return found if found.get("state") == "done" else {}


@transaction.atomic
def store_near_duplicates(
    ref: SnapshotRef, pairs: Sequence[NearPair], *, model: str, threshold: float
) -> None:
    """Store the pairs found in a version, in place of earlier ones.

    Args:
        threshold: the least cosine of a pair.
    """
    NearDuplicate.objects.filter(dataset_id=ref.dataset_id).delete()
    NearDuplicate.objects.bulk_create(
        [
            NearDuplicate(
                dataset_id=ref.dataset_id,
                index=pair.index,
                other_index=pair.other_index,
                cosine=pair.cosine,
            )
            for pair in pairs
        ],
        batch_size=2_000,
    )
    Dataset.objects.filter(pk=ref.dataset_id).update(
        near=SearchStatus(
            state="done", model=model, version=ref.version, found=len(pairs), threshold=threshold
        )
    )


def list_pairs(dataset: Dataset, *, after: int = 0, limit: int = 50) -> list[PairRows]:
    """Return pairs whose rows both still exist, the nearest first, from position `after` on."""
    pairs = list(dataset.near_duplicates.all()[after : after + limit])
    places = {place for pair in pairs for place in (pair.index, pair.other_index)}
    rows = {row.index: row for row in dataset.examples.filter(index__in=places)}
    return [
        PairRows(rows[pair.index], rows[pair.other_index], pair.cosine)
        for pair in pairs
        if pair.index in rows and pair.other_index in rows
    ]
