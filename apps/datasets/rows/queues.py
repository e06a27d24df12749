"""Labelling by keyboard: which row comes next, from a queue or from the dataset itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max

from apps.datasets.models import Dataset, Example, Queue, QueueItem, Revision, Split
from apps.datasets.rows.bulk_edits import undo
from apps.datasets.rows.revisions import last_undoable

MAX_ITEMS = 10_000


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A row to look at, and why. `suggested` are labels, the likeliest first."""

    index: int
    reason: str = ""
    suggested: tuple[str, ...] = ()


@transaction.atomic
def create_queue(dataset: Dataset, *, name: str, items: Sequence[QueueEntry]) -> Queue:
    """Create a queue of these rows in this order. Test rows are left out: never relabelled.

    Raises:
        ValueError: more rows than a queue may have.
    """
    if len(items) > MAX_ITEMS:
        raise ValueError(f"Too many rows. The limit is {MAX_ITEMS:,} per queue.")
    allowed: set[int] = set()
    for start in range(0, len(items), 500):
        some = [item.index for item in items[start : start + 500]]
        rows = dataset.examples.exclude(split=Split.TEST).filter(index__in=some)
        allowed.update(rows.values_list("index", flat=True))
    entries = {item.index: item for item in reversed(items) if item.index in allowed}
    kept = [item for item in items if entries.get(item.index) is item]
    queue = Queue.objects.create(
        dataset=dataset, name=name[:200], left_out=len({i.index for i in items} - allowed)
    )
    QueueItem.objects.bulk_create(
        [
            QueueItem(
                queue=queue,
                place=place,
                index=item.index,
                reason=item.reason[:300],
                suggested=list(item.suggested[:9]),
            )
            for place, item in enumerate(kept)
        ],
        batch_size=2_000,
    )
    return queue


@dataclass(frozen=True, slots=True)
class Card:
    """One row to label."""

    example: Example
    reason: str
    suggested: list[str]
    done: int
    total: int
    """Of the queue, or of the unlabelled rows."""


def next_in_queue(queue: Queue, *, at: int | None = None) -> Card | None:
    """Return the next row that was not reviewed, or the one at index `at` of the dataset.

    Rows that were deleted, or became test rows, meanwhile are passed over.
    """
    items = queue.items.all()
    total = items.count()
    done = items.filter(seen=True).count()
    open_items = items.filter(index=at) if at is not None else items.filter(seen=False)
    rows = queue.dataset.examples.exclude(split=Split.TEST)
    item = open_items.filter(index__in=rows.values("index")).first()
    if item is None:
        return None
    example = rows.get(index=item.index)
    return Card(example, item.reason, item.suggested, done, total)


def may_relabel(queue: Queue, index: int) -> bool:
    """Return True if the row is in the queue and not a test row."""
    rows = queue.dataset.examples.exclude(split=Split.TEST).filter(index=index)
    return rows.exists() and queue.items.filter(index=index).exists()


@transaction.atomic
def mark_seen(queue: Queue, index: int, *, revision: Revision | None = None) -> None:
    """Mark a row as reviewed, and labelled by `revision` if given: `step_back` undoes it."""
    turns = queue.items.aggregate(last=Max("turn"))["last"] or 0
    number = revision.number if revision is not None else None
    queue.items.filter(index=index).update(seen=True, turn=turns + 1, revision=number)


def last_seen(queue: Queue) -> QueueItem | None:
    """Return the row reviewed last, if going back to it would undo nothing else."""
    item = queue.items.filter(seen=True, turn__isnull=False).order_by("-turn").first()
    if item is None or item.revision is None:
        return item
    given = queue.dataset.revisions.get(number=item.revision)
    last = last_undoable(queue.dataset)
    return item if given.undone or last == given else None


@transaction.atomic
def step_back(queue: Queue, *, by: User) -> int | None:
    """Undo the last action here: a label given, or a row kept or skipped.

    Returns:
        The row it was done to; None if nothing can be undone here: nothing was done, or the
        dataset was changed since.
    """
    item = last_seen(queue)
    if item is None:
        return None
    if item.revision is not None and not queue.dataset.revisions.get(number=item.revision).undone:
        undo(queue.dataset, by=by)
    queue.items.filter(pk=item.pk).update(seen=False, turn=None, revision=None)
    return item.index


def next_unlabelled(dataset: Dataset, *, after: int = -1, at: int | None = None) -> Card | None:
    """Return the next row without a label after an index, or the row at index `at`."""
    rows = dataset.examples.order_by("index")
    if at is not None:
        example = rows.filter(index=at).first()
    else:
        unlabelled = rows.filter(label="")
        example = unlabelled.filter(index__gt=after).first() or unlabelled.first()
    if example is None:
        return None
    return Card(example, "", [], dataset.rows - dataset.unlabelled, dataset.rows)
