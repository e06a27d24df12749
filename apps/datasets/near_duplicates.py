"""The search for near copies. Another room has the vectors: it registers how to start."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import transaction

from apps.datasets.models import Dataset, Example, NearCopy
from apps.datasets.rows.history import SnapshotRef

Start = Callable[[Dataset], None]
_starts: list[Start] = []


@dataclass(frozen=True, slots=True)
class Near:
    """Two rows by their places; `index` is the test row where one of them is."""

    index: int
    other_index: int
    cosine: float


@dataclass(frozen=True, slots=True)
class Shown:
    """Two rows side by side."""

    row: Example
    other: Example
    cosine: float

    @property
    def both(self) -> tuple[Example, Example]:
        return self.row, self.other

    @property
    def differ(self) -> bool:
        """Their labels do: one of them may be wrong."""
        return self.row.label != self.other.label


def register(start: Start) -> None:
    """Called once, when the room that has the vectors starts.

    `start(dataset)` tells a worker, which ends with `record` or `fail`.
    """
    _starts[:] = [start]


def is_available() -> bool:
    return bool(_starts)


def look(dataset: Dataset) -> bool:
    """Starts the search; False where one is going on, or nobody can search."""
    if not _starts:
        return False
    with transaction.atomic():
        locked = Dataset.objects.select_for_update().get(pk=dataset.pk)
        if locked.near.get("state") == "running":
            return False
        locked.near = {"state": "running", "done": 0, "total": 0}
        locked.save(update_fields=["near"])
    dataset.near = locked.near
    _starts[0](dataset)
    return True


def progress(dataset_id: int, done: int, total: int) -> None:
    Dataset.objects.filter(pk=dataset_id).update(
        near={"state": "running", "done": done, "total": total}
    )


def fail(dataset_id: int, error: str) -> None:
    Dataset.objects.filter(pk=dataset_id).update(near={"state": "failed", "error": error})


@transaction.atomic
def record(ref: SnapshotRef, pairs: Sequence[Near], *, model: str, threshold: float) -> None:
    """Keeps what was found in a version, in place of what was found before.

    Args:
        threshold: the least cosine of a pair.
    """
    NearCopy.objects.filter(dataset_id=ref.dataset_id).delete()
    NearCopy.objects.bulk_create(
        [
            NearCopy(
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
        near={
            "state": "done",
            "model": model,
            "version": ref.version,
            "found": len(pairs),
            "threshold": threshold,
        }
    )


def side_by_side(dataset: Dataset, *, after: int = 0, limit: int = 50) -> list[Shown]:
    """The pairs from place `after` on whose rows are both still there, the nearest first."""
    pairs = list(dataset.near_copies.all()[after : after + limit])
    places = {place for pair in pairs for place in (pair.index, pair.other_index)}
    rows = {row.index: row for row in dataset.examples.filter(index__in=places)}
    return [
        Shown(rows[pair.index], rows[pair.other_index], pair.cosine)
        for pair in pairs
        if pair.index in rows and pair.other_index in rows
    ]
