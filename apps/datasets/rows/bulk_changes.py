"""Changes of many rows: a few hundred per transaction, so that others can write meanwhile.

Such a change holds its dataset by a lease whose token is in every transaction; other changes of the
dataset are refused until it is done. Its revision is incomplete, and no version, until the last
chunk; a worker that finds an abandoned one rolls it back and starts again.
"""

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from apps.datasets.models import BulkChange, Change, Dataset, Revision
from apps.datasets.rows import steps
from apps.datasets.rows.steps import CHUNK_ROWS, CountChanges, Step

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=120)
WAKE_AFTER = timedelta(seconds=45)
MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """The steps of a change. `chunks` are read after it has started; each is a transaction."""

    description: str
    rows: int
    chunks: Callable[[], Iterator[list[Step]]] = field(repr=False)
    undoes: Revision | None = None


Planner = Callable[[Dataset, dict[str, Any]], ChangePlan]
"""Reads as little as possible of the dataset before the first chunk."""


class LeaseLost(Exception):
    """Another worker holds the change now."""


def create_change(
    dataset: Dataset, kind: str, args: dict[str, Any], *, by: User | None, held: bool
) -> BulkChange:
    """Store a change that is to be made; from now on others cannot change the dataset.

    Args:
        held: by this process, which makes it now. Else a worker does.

    Raises:
        BeingChanged: another change is in progress.
    """
    with transaction.atomic():
        steps.lock_dataset(dataset)
        BulkChange.objects.filter(dataset=dataset).delete()  # a failed one
        return BulkChange.objects.create(
            dataset=dataset,
            kind=kind,
            args=args,
            by=by,
            lease=uuid.uuid4() if held else None,
            lease_until=timezone.now() + LEASE if held else None,
            attempts=1 if held else 0,
        )


def run_change(change_id: int, planners: Mapping[str, Planner]) -> None:
    """Make a change as a worker; does nothing if another worker holds it or it is done.

    A kind without a planner had its rows in a request that is gone: it is rolled back.
    """
    now = timezone.now()
    token = uuid.uuid4()
    free = BulkChange.objects.filter(pk=change_id, error="").filter(
        Q(lease_until=None) | Q(lease_until__lt=now)
    )
    if not free.update(lease=token, lease_until=now + LEASE, attempts=F("attempts") + 1):
        return
    change = BulkChange.objects.select_related("dataset", "by").get(pk=change_id)
    try:
        roll_back(change)
        if change.attempts > MAX_ATTEMPTS:
            raise ValueError(f"The worker ended {MAX_ATTEMPTS} times during this change.")
        if change.kind in planners:
            make_change(change, planners[change.kind](change.dataset, change.args))
        else:
            change.delete()
    except LeaseLost:
        log.warning("Change %s was taken over by another worker.", change_id)
    except ValueError as error:
        fail_change(change, str(error))
    except Exception:
        fail_change(change, "Something went wrong. Details are in the worker log.")
        raise


def make_change(change: BulkChange, plan: ChangePlan) -> Revision | None:
    """Make a change chunk by chunk. Return None, and add no version, if nothing had to change.

    Raises:
        LeaseLost: the lease went to another process.
    """
    dataset = change.dataset
    counts = CountChanges()
    revision: Revision | None = None
    for chunk in plan.chunks():
        with transaction.atomic():
            _renew(change, done=counts.rows + len(chunk), total=plan.rows)
            if revision is None:
                revision = Revision.objects.create(
                    dataset=dataset,
                    number=dataset.version + 1,
                    what=plan.description[:300],
                    by=change.by,
                    undoes=plan.undoes,
                    complete=False,
                )
            steps.record_steps(dataset, revision, chunk)
        counts.add(chunk)
    duplicates = steps.count_duplicates(dataset) if counts.changes_row_count else None
    with transaction.atomic():
        _renew(change)
        if revision is not None:
            now = Dataset.objects.select_for_update().get(pk=dataset.pk)
            steps.finish_revision(now, revision, counts, duplicates)
        change.delete()
    dataset.refresh_from_db()
    return revision


def roll_back(change: BulkChange) -> None:
    """Undo the steps of an unfinished change, chunk by chunk."""
    left = Revision.objects.filter(dataset=change.dataset, complete=False).first()
    while left is not None:
        rows = left.changes.order_by("pk").values_list("pk", "index", "before", "after")[
            :CHUNK_ROWS
        ]
        undone = [(key, Step(index, before, after).inverse) for key, index, before, after in rows]
        with transaction.atomic():
            _renew(change)
            if not undone:
                left.delete()
                # A report made halfway would pass for one of the version before.
                Dataset.objects.filter(pk=change.dataset_id).update(report={})
                return
            steps.apply_steps(change.dataset, [step for _, step in undone])
            Change.objects.filter(pk__in=[key for key, _ in undone]).delete()


def fail_change(change: BulkChange, error: str) -> None:
    """Roll a change back and store the reason, for the page."""
    try:
        roll_back(change)
        _renew(change, error=error, lease=None, lease_until=None)
    except LeaseLost:
        log.warning("Change %s had ended before.", change.pk)


def abandon_change(change: BulkChange) -> None:
    """Roll back and delete a change in the process that makes it: the error is shown at once."""
    try:
        roll_back(change)
        change.delete()
    except LeaseLost:
        log.warning("Change %s had ended before.", change.pk)


def abandoned_changes() -> list[int]:
    """Return changes that no worker holds: a message was lost, or a process died."""
    now = timezone.now()
    waiting = BulkChange.objects.filter(error="", enqueued_at__lt=now - WAKE_AFTER).filter(
        Q(lease_until=None) | Q(lease_until__lt=now)
    )
    found = list(waiting.values_list("pk", flat=True))
    BulkChange.objects.filter(pk__in=found).update(enqueued_at=now)
    return found


def _renew(change: BulkChange, **values: Any) -> None:
    values = {"lease_until": timezone.now() + LEASE} | values
    if not BulkChange.objects.filter(pk=change.pk, lease=change.lease).update(**values):
        raise LeaseLost
