"""Claiming pending rows: each row is with one pump, behind the fence of its lease.

A pump claims the rows that it is about to send. Only the pump that claimed a row starts it; claims
of a pump that died or of a server that was removed are taken back.
"""

from collections.abc import Collection
from datetime import datetime

from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.batch.models import Item, ItemStatus
from apps.batch.store.leases import Lease, fence
from apps.batch.store.row_events import PendingRow
from apps.servers.models import Server


def claim_rows(lease: Lease, batch_id: int, limit: int) -> list[PendingRow]:
    """Claim the next due rows that no pump holds, in order.

    Raises:
        LeaseLost: nothing was claimed.
    """
    if not _claimable(batch_id, timezone.now()).exists():
        return []  # asked every second: reading needs no lock
    with fence(lease) as now:
        found = _claimable(batch_id, now).select_for_update(skip_locked=True).order_by("index")
        rows = list(found.values_list("pk", "batch_id", "index", "attempts", "input")[:limit])
        keys = [pk for pk, *_ in rows]
        Item.objects.filter(pk__in=keys).update(server=lease.server_id, token=lease.token)
    return [PendingRow(*values) for values in rows]


def release_rows(lease: Lease, keys: Collection[int]) -> None:
    """Give claimed rows back that were not started."""
    with fence(lease):
        _held_by(lease.server_id).filter(
            pk__in=keys, status=ItemStatus.PENDING, token=lease.token
        ).update(server=None)


def release_all_rows(lease: Lease) -> None:
    """Give all claimed rows back, at the end of the pump."""
    with fence(lease):
        _held_by(lease.server_id).filter(status=ItemStatus.PENDING).update(server=None)


def release_earlier_rows(lease: Lease) -> None:
    """Give back what earlier pumps of the server had claimed and not started. Behind the fence."""
    held = _held_by(lease.server_id).filter(status=ItemStatus.PENDING)
    held.filter(token__lt=lease.token).update(server=None)


def release_rows_of_removed_servers() -> int:
    """Return the rows of servers that were removed to pending. Returns their number."""
    held = Item.objects.filter(server__isnull=False, finished=None)
    holders = set(held.values_list("server", flat=True).distinct())
    if not (gone := holders - set(Server.objects.values_list("pk", flat=True))):
        return 0
    return held.filter(server__in=gone).update(
        status=ItemStatus.PENDING, server=None, reason="The model server was removed."
    )


def _held_by(server_id: int) -> QuerySet[Item]:
    """The open rows of a server, by the index of claimed rows."""
    return Item.objects.filter(server=server_id, finished=None)


def _claimable(batch_id: int, now: datetime) -> QuerySet[Item]:
    due = Q(not_before=None) | Q(not_before__lte=now)
    return Item.objects.filter(due, batch=batch_id, status=ItemStatus.PENDING, code="", server=None)
