"""Writing the state of a server's jobs, behind the fence of the pump's lease."""

from collections.abc import Sequence

from django.db.models import Exists, OuterRef
from django.utils import timezone

from apps.batch.handlers import LateRejection
from apps.batch.jobs import job_policies
from apps.batch.models import ACTIVE, OPEN, Batch, BatchStatus, Item, ItemStatus
from apps.batch.store.leases import Lease, fence
from apps.batch.store.row_writes import MAX_ATTEMPTS
from apps.core.text.storable import to_storable

RECOVERED = "The worker ended while this row was running. The row starts again."


def recover_rows(lease: Lease) -> int:
    """Return rows that a dead pump left running to pending. Returns their number."""
    with fence(lease):
        left = Item.objects.filter(
            batch__server_id=lease.server_id, status=ItemStatus.RUNNING, token__lt=lease.token
        )
        # By keys: some databases turn an update through a join into a subquery over all items.
        keys = dict(left.values_list("pk", "attempts"))
        dead = [pk for pk, attempts in keys.items() if attempts >= MAX_ATTEMPTS]
        Item.objects.filter(pk__in=dead).update(
            status=ItemStatus.FAILED,
            code="worker_died",
            reason=f"The worker stopped {MAX_ATTEMPTS} times while running this row.",
            finished=timezone.now(),
        )
        Item.objects.filter(pk__in=keys.keys() - set(dead)).update(
            status=ItemStatus.PENDING, reason=RECOVERED
        )
        # This pump sets the reasons of the last one again where they still hold.
        set_server_wait_reason(lease.server_id, "")
    return len(keys)


def reject_late(lease: Lease, rows: Sequence[LateRejection]) -> None:
    """Reject accepted rows that nobody reviewed."""
    with fence(lease):
        for row in rows:
            Item.objects.filter(pk=row.item_id, status=ItemStatus.ACCEPTED, reviewed=False).update(
                status=ItemStatus.REJECTED, code=row.code, reason=to_storable(row.reason)
            )


def enforce_policies(lease: Lease) -> list[int]:
    """Apply refill, yield and daily limit. Returns the batches that got new rows."""
    with fence(lease):
        return job_policies.enforce_policies(lease.server_id)


def finish_batches(lease: Lease, batch_ids: Sequence[int]) -> list[int]:
    """Finish batches without an open row. Returns the batches that got new rows."""
    still_open = Item.objects.filter(batch=OuterRef("pk"), status__in=OPEN)
    with fence(lease):
        # First, or a batch that has to refill would be finished.
        refilled = job_policies.enforce_policies(lease.server_id)
        over = Batch.objects.filter(pk__in=batch_ids, status__in=ACTIVE).filter(~Exists(still_open))
        for batch_id in list(over.values_list("pk", flat=True)):
            status, reason = _final_state(batch_id)
            Batch.objects.filter(pk=batch_id, status__in=ACTIVE).update(
                status=status, reason=reason, finished=timezone.now()
            )
    return refilled


def _final_state(batch_id: int) -> tuple[BatchStatus, str]:
    items = Item.objects.filter(batch_id=batch_id)
    if items.filter(status=ItemStatus.ACCEPTED).exists() or not items.exists():
        return BatchStatus.DONE, ""
    if items.filter(status=ItemStatus.REJECTED).exists():
        return BatchStatus.DONE, "No row was accepted. The reasons are below."
    return BatchStatus.FAILED, "All rows failed. The reasons are below."


def set_wait_reason(lease: Lease, reason: str, batch_ids: Sequence[int] | None = None) -> None:
    """Store why batches wait, by default all active ones of the server; "" clears it."""
    with fence(lease):
        if batch_ids is None:
            return set_server_wait_reason(lease.server_id, reason)
        reason = to_storable(reason)
        batches = Batch.objects.filter(pk__in=batch_ids, status__in=ACTIVE)
        batches.exclude(reason=reason).update(reason=reason)


def set_server_wait_reason(server_id: int, reason: str) -> None:
    """Store why all active batches of a server wait; needs no lease."""
    reason = to_storable(reason)
    batches = Batch.objects.filter(server_id=server_id, status__in=ACTIVE)
    batches.exclude(reason=reason).update(reason=reason)


def set_status(lease: Lease, batch_ids: Sequence[int], *, status: BatchStatus, reason: str) -> None:
    """Pause or fail active batches, with the reason that the page shows."""
    with fence(lease):
        Batch.objects.filter(pk__in=batch_ids, status__in=ACTIVE).update(
            status=status, reason=to_storable(reason)
        )
