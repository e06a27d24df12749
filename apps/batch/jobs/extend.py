"""Extending jobs: more rows, failed rows again, replacements again.

A finished job continues with them.
"""

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.batch.errors import WrongState
from apps.batch.handlers import RowOrigin
from apps.batch.jobs.lifecycle import keys_in_chunks, reset_limits
from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.batch.store.items import INSERT_ROWS, add_items, next_index

CANCELLED = "This job was cancelled. Start a new one."


def add_rows(batch: Batch, rows: int) -> None:
    """Add rows, also to a finished job.

    A few thousand per transaction: the pump and other people write in between.

    Raises:
        WrongState: the job was cancelled.
    """
    for done in range(0, rows, INSERT_ROWS):
        _add_rows(batch.pk, min(INSERT_ROWS, rows - done))
    batch.refresh_from_db()


@transaction.atomic
def _add_rows(batch_id: int, rows: int) -> None:
    batch = Batch.objects.select_for_update().get(pk=batch_id)
    if batch.status == BatchStatus.CANCELLED:
        raise WrongState(CANCELLED)
    # Numbered after the rows that were asked for: quotas continue where they ended.
    inputs = [RowOrigin(batch.wanted + at).to_json() for at in range(rows)]
    first = next_index(batch)
    add_items(batch, inputs, first=first)
    batch.total = first + rows
    batch.goal = None if batch.goal is None else batch.goal + rows
    if batch.status in (BatchStatus.DONE, BatchStatus.FAILED):
        batch.status, batch.reason, batch.finished = BatchStatus.QUEUED, "", None
    batch.save(update_fields=["total", "goal", "status", "reason", "finished"])
    reset_limits(batch)


def retry_failed_rows(batch: Batch) -> int:
    """Return failed rows to pending with all their attempts. Returns the number of rows.

    Raises:
        WrongState: the job was cancelled, or no row failed.
    """
    if batch.status == BatchStatus.CANCELLED:
        raise WrongState(CANCELLED)
    # A failed row with a replacement leaves no gap.
    failed = Item.objects.filter(batch=batch, status=ItemStatus.FAILED, replaced=False)
    count = 0
    for keys in keys_in_chunks(failed):
        count += failed.filter(pk__in=keys).update(
            status=ItemStatus.PENDING,
            server=None,
            code="",
            reason="",
            attempts=0,
            not_before=None,
            finished=None,
        )
    if not count:
        raise WrongState("No failed rows.")
    Batch.objects.filter(pk=batch.pk, status__in=(BatchStatus.DONE, BatchStatus.FAILED)).update(
        status=BatchStatus.QUEUED, reason="", finished=None
    )
    reset_limits(batch)
    batch.refresh_from_db()
    return count


def continue_refill(batch: Batch) -> bool:
    """Requeue a finished job that refills, after accepted rows were taken out.

    These rows do not count towards the yield. Returns True if the job was requeued.
    """
    refilling = Batch.objects.filter(pk=batch.pk, goal__isnull=False)
    refilling.update(yield_counted_since=timezone.now())
    requeued = refilling.filter(status=BatchStatus.DONE).update(
        status=BatchStatus.QUEUED, reason="", finished=None, rows_before_resume=F("total")
    )
    return bool(requeued)
