"""Changes of many rows: a few hundred per transaction, so that others can write meanwhile.

Such a change is a durable task of its dataset, and each chunk is written under its lease; other
changes of the dataset are refused until it is done. Its revision is incomplete, and no version,
until the last chunk; a worker that takes over from a dead one rolls it back and starts again.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from apps.core.schemas.json_types import JsonObject
from apps.datasets.errors import BeingChanged
from apps.datasets.models import Change, Dataset, Revision, TaskKind
from apps.datasets.rows import steps
from apps.datasets.rows.steps import CHUNK_ROWS, CountChanges, Step
from apps.work import services as work
from apps.work.errors import LeaseLost
from apps.work.models import Task, TaskState
from apps.work.services import HeldTask


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """The steps of a change. `chunks` are read after it has started; each is a transaction."""

    description: str
    rows: int
    chunks: Callable[[], Iterator[list[Step]]] = field(repr=False)
    undoes: Revision | None = None


Planner = Callable[[Dataset, dict[str, Any]], ChangePlan]
"""Reads as little as possible of the dataset before the first chunk."""


@dataclass(frozen=True, slots=True)
class PendingChange:
    """A change of many rows that a worker makes, or that failed."""

    kind: str
    done: int
    """Rows."""
    total: int
    error: str
    """The reason why it failed and was taken back; empty while it is under way."""
    wait_reason: str
    """What it waits for; empty if it does not wait."""

    @classmethod
    def of_task(cls, task: Task) -> "PendingChange":
        kind = str(task.options["change"])
        return cls(kind, task.done, task.total, task.error, work.wait_reason(task))


def pending_change(dataset: Dataset) -> PendingChange | None:
    task = work.find(TaskKind.CHANGE, dataset.pk)
    if task is None or not (task.is_active or task.state == TaskState.FAILED):
        return None
    return PendingChange.of_task(task)


def create_change(
    dataset: Dataset, kind: str, args: dict[str, Any], *, by: User | None, send: bool
) -> Task:
    """Queue a change that is to be made; from now on others cannot change the dataset.

    Args:
        send: a worker makes it. False if this process does.

    Raises:
        BeingChanged: another change is in progress.
    """
    with transaction.atomic():
        steps.lock_dataset(dataset)
        options: JsonObject = {"change": kind, "args": args}
        task = work.enqueue(TaskKind.CHANGE, dataset.pk, owner=by, options=options, send=send)
        if task is None:
            raise BeingChanged
    return task


def make_change(held: HeldTask, dataset: Dataset, plan: ChangePlan) -> Revision | None:
    """Make a change chunk by chunk. Return None, and add no version, if nothing had to change.

    Raises:
        LeaseLost: the lease went to another process.
    """
    counts = CountChanges()
    revision: Revision | None = None
    for chunk in plan.chunks():
        with held.fence(done=counts.rows + len(chunk), total=plan.rows):
            if revision is None:
                revision = Revision.objects.create(
                    dataset=dataset,
                    number=dataset.version + 1,
                    what=plan.description[:300],
                    by_id=held.task.owner_id,
                    undoes=plan.undoes,
                    complete=False,
                )
            steps.record_steps(dataset, revision, chunk)
        counts.add(chunk)
    duplicates = steps.count_duplicates(dataset) if counts.changes_row_count else None
    with held.fence():
        if revision is not None:
            now = Dataset.objects.select_for_update().get(pk=dataset.pk)
            steps.finish_revision(now, revision, counts, duplicates)
        held.end(TaskState.DONE)
    dataset.refresh_from_db()
    return revision


def roll_back(held: HeldTask, dataset: Dataset) -> None:
    """Undo the steps of an unfinished change, chunk by chunk."""
    left = Revision.objects.filter(dataset=dataset, complete=False).first()
    while left is not None:
        rows = left.changes.order_by("pk").values_list("pk", "index", "before", "after")[
            :CHUNK_ROWS
        ]
        undone = [(key, Step(index, before, after).inverse) for key, index, before, after in rows]
        with held.fence():
            if not undone:
                left.delete()
                # A report made halfway would pass for one of the version before.
                Dataset.objects.filter(pk=dataset.pk).update(report={})
                return
            steps.apply_steps(dataset, [step for _, step in undone])
            Change.objects.filter(pk__in=[key for key, _ in undone]).delete()


def fail_change(held: HeldTask, dataset: Dataset, error: str) -> None:
    """Roll a change back and store the reason, for the page."""
    roll_back(held, dataset)
    held.end(TaskState.FAILED, error)


def abandon_change(held: HeldTask, dataset: Dataset) -> None:
    """Roll back and forget a change in the process that makes it: the error is shown at once."""
    with suppress(LeaseLost):
        roll_back(held, dataset)
        with held.fence():
            held.task.delete()
