"""Changes of many rows: a few hundred in a transaction, so that others can write meanwhile.

Such a change holds its dataset by a lease whose token is in every transaction; other changes of the
dataset are refused until it is over. Its revision is incomplete, and no version, until the last
piece: whoever finds one that was left behind takes it back, and begins again.
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

from apps.datasets.imports.writer import count_duplicates
from apps.datasets.models import BulkChange, Change, Dataset, Revision
from apps.datasets.rows import changes
from apps.datasets.rows.changes import FEW, Counts, Step

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=120)
WAKE_AFTER = timedelta(seconds=45)
MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Work:
    """What a change does. `pieces` are read when it has begun; each is a transaction."""

    what: str
    rows: int
    pieces: Callable[[], Iterator[list[Step]]] = field(repr=False)
    undoes: Revision | None = None


Planner = Callable[[Dataset, dict[str, Any]], Work]
"""Reads no more of the dataset than it must before the first piece."""


class Lost(Exception):
    """Another worker holds the change now."""


def begin(
    dataset: Dataset, kind: str, args: dict[str, Any], *, by: User | None, held: bool
) -> BulkChange:
    """Writes down that a change is to be made; from now on nobody else changes the dataset.

    Args:
        held: by this process, which makes it now. Else a worker does.

    Raises:
        BeingChanged: another one is under way.
    """
    with transaction.atomic():
        changes.locked(dataset)
        BulkChange.objects.filter(dataset=dataset).delete()  # one that failed
        return BulkChange.objects.create(
            dataset=dataset,
            kind=kind,
            args=args,
            by=by,
            lease=uuid.uuid4() if held else None,
            lease_until=timezone.now() + LEASE if held else None,
            attempts=1 if held else 0,
        )


def run(change_id: int, plans: Mapping[str, Planner]) -> None:
    """Makes a change as a worker; does nothing where another is at it, or it is over.

    One that is not among the plans had its rows in a request that is gone: it is taken back.
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
        take_back(change)
        if change.attempts > MAX_ATTEMPTS:
            raise ValueError(f"The worker ended {MAX_ATTEMPTS} times during this change.")
        if change.kind in plans:
            make(change, plans[change.kind](change.dataset, change.args))
        else:
            change.delete()
    except Lost:
        log.warning("Change %s was taken over by another worker.", change_id)
    except ValueError as error:
        fail(change, str(error))
    except Exception:
        fail(change, "Something went wrong. Details are in the worker log.")
        raise


def make(change: BulkChange, work: Work) -> Revision | None:
    """Does the work piece by piece. None, and no version, where there was nothing to do.

    Raises:
        Lost: the lease went to another process.
    """
    dataset = change.dataset
    counts = Counts()
    revision: Revision | None = None
    for piece in work.pieces():
        with transaction.atomic():
            _hold(change, done=counts.rows + len(piece), total=work.rows)
            if revision is None:
                revision = Revision.objects.create(
                    dataset=dataset,
                    number=dataset.version + 1,
                    what=work.what[:300],
                    by=change.by,
                    undoes=work.undoes,
                    complete=False,
                )
            changes.write(dataset, revision, piece)
        counts.add(piece)
    duplicates = count_duplicates(dataset) if counts.moved else None
    with transaction.atomic():
        _hold(change)
        if revision is not None:
            now = Dataset.objects.select_for_update().get(pk=dataset.pk)
            changes.finish(now, revision, counts, duplicates)
        change.delete()
    dataset.refresh_from_db()
    return revision


def take_back(change: BulkChange) -> None:
    """Undoes what an unfinished change did, piece by piece."""
    left = Revision.objects.filter(dataset=change.dataset, complete=False).first()
    while left is not None:
        rows = left.changes.order_by("pk").values_list("pk", "index", "before", "after")[:FEW]
        steps = [(key, Step(index, before, after).back) for key, index, before, after in rows]
        with transaction.atomic():
            _hold(change)
            if not steps:
                left.delete()
                # A report of the half of it would pass for one of the version before.
                Dataset.objects.filter(pk=change.dataset_id).update(report={})
                return
            changes.apply(change.dataset, [step for _, step in steps])
            Change.objects.filter(pk__in=[key for key, _ in steps]).delete()


def fail(change: BulkChange, error: str) -> None:
    """Takes it back and keeps the reason, for the page."""
    try:
        take_back(change)
        _hold(change, error=error, lease=None, lease_until=None)
    except Lost:
        log.warning("Change %s had ended before.", change.pk)


def give_up(change: BulkChange) -> None:
    """Takes it back, in the process that made it: whoever asked is told at once."""
    try:
        take_back(change)
        change.delete()
    except Lost:
        log.warning("Change %s had ended before.", change.pk)


def forgotten() -> list[int]:
    """The changes nobody works on: their message was lost, or their process died."""
    now = timezone.now()
    waiting = BulkChange.objects.filter(error="", woken__lt=now - WAKE_AFTER).filter(
        Q(lease_until=None) | Q(lease_until__lt=now)
    )
    found = list(waiting.values_list("pk", flat=True))
    BulkChange.objects.filter(pk__in=found).update(woken=now)
    return found


def _hold(change: BulkChange, **values: Any) -> None:
    values = {"lease_until": timezone.now() + LEASE} | values
    if not BulkChange.objects.filter(pk=change.pk, lease=change.lease).update(**values):
        raise Lost
