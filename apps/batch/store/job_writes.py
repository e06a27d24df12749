"""Writing the state of a server's jobs, behind the fence of the pump's lease."""

from collections.abc import Sequence

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from apps.batch.handlers import LateRejection
from apps.batch.jobs import job_policies
from apps.batch.models import ACTIVE, OPEN, Batch, BatchServer, BatchStatus, Item, ItemStatus
from apps.batch.store import claims
from apps.batch.store.leases import Lease, fence
from apps.batch.store.row_writes import MAX_ATTEMPTS
from apps.core.text.storable import to_storable

State = BatchServer.State

RECOVERED = "The worker ended while this row was running. The row starts again."


def recover_rows(lease: Lease) -> int:
    """Return rows that a dead pump left running to pending. Returns their number."""
    with fence(lease):
        claims.release_earlier_rows(lease)
        left = Item.objects.filter(
            server=lease.server_id,
            finished=None,
            status=ItemStatus.RUNNING,
            token__lt=lease.token,
        )
        keys = dict(left.values_list("pk", "attempts"))
        dead = [pk for pk, attempts in keys.items() if attempts >= MAX_ATTEMPTS]
        Item.objects.filter(pk__in=dead).update(
            status=ItemStatus.FAILED,
            code="worker_died",
            reason=f"The worker stopped {MAX_ATTEMPTS} times while running this row.",
            finished=timezone.now(),
        )
        Item.objects.filter(pk__in=keys.keys() - set(dead)).update(
            status=ItemStatus.PENDING, server=None, reason=RECOVERED
        )
        # This pump sets the reasons of the last one again where they still hold.
        BatchServer.objects.filter(server=lease.server_id).update(state=State.WORKING, reason="")
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
    """Store why the server does not work on batches, by default all active ones; "" clears it."""
    with fence(lease):
        if batch_ids is None:
            return set_server_wait_reason(lease.server_id, reason)
        _set_reason(lease.server_id, reason, State.WAITING, Q(pk__in=batch_ids))


def set_server_wait_reason(server_id: int, reason: str) -> None:
    """Store why a server works on none of its active batches; needs no lease."""
    left_out = BatchServer.objects.filter(server=server_id, state=State.LEFT_OUT).values("batch")
    which = Q(server=server_id) | Q(servers__server=server_id)
    _set_reason(server_id, reason, State.AWAY, which & ~Q(pk__in=left_out))


def _set_reason(server_id: int, reason: str, state: State, which: Q) -> None:
    """Store a reason at the batch, or at its server where it has several."""
    reason = to_storable(reason)
    batches = Batch.objects.filter(which, status__in=ACTIVE)
    shared = BatchServer.objects.filter(batch__in=batches.values("pk"), server=server_id)
    state = state if reason else State.WORKING
    shared.exclude(reason=reason, state=state).update(reason=reason, state=state)
    alone = Batch.objects.filter(pk__in=batches.values("pk"), servers=None)
    alone.exclude(reason=reason).update(reason=reason)


def set_job_wait_reason(lease: Lease, batch_id: int, reason: str) -> None:
    """Store why a job waits, whichever servers work on it; "" clears it."""
    with fence(lease):
        batches = Batch.objects.filter(pk=batch_id, status__in=ACTIVE)
        batches.exclude(reason=reason).update(reason=to_storable(reason))


def leave_out(lease: Lease, batch_id: int, reason: str) -> bool:
    """Store that the server cannot do a job that others may. False if no other is left."""
    with fence(lease):
        servers = BatchServer.objects.filter(batch=batch_id)
        servers.filter(server=lease.server_id).update(
            state=State.LEFT_OUT, reason=to_storable(reason)
        )
        others = servers.exclude(server=lease.server_id)
        return others.exclude(state=State.LEFT_OUT).exists()


def set_status(lease: Lease, batch_ids: Sequence[int], *, status: BatchStatus, reason: str) -> None:
    """Pause or fail active batches, with the reason that the page shows."""
    with fence(lease):
        Batch.objects.filter(pk__in=batch_ids, status__in=ACTIVE).update(
            status=status, reason=to_storable(reason)
        )
        BatchServer.objects.filter(batch__in=batch_ids).update(state=State.WORKING, reason="")
