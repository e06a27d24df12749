"""Reading jobs and rows for a pump."""

from collections.abc import Sequence
from typing import Any

from django.db.models import CharField, Q
from django.db.models.functions import MD5
from django.utils import timezone

from apps.batch.models import ACTIVE, Batch, Item, ItemStatus
from apps.batch.store.row_events import PendingRow
from apps.servers.models import Server


def active_batches(server_id: int) -> list[tuple[Batch, str]]:
    """Return active batches with a hash of their spec; the large spec is read when it is needed."""
    batches = Batch.objects.filter(server_id=server_id, status__in=ACTIVE).order_by("pk")
    hashed = batches.defer("spec").annotate(hashed=MD5("spec", output_field=CharField()))
    return [(batch, batch.hashed) for batch in hashed]


def spec_of(batch_id: int) -> dict[str, Any]:
    spec: dict[str, Any] = Batch.objects.values_list("spec", flat=True).get(pk=batch_id)
    return spec


def statuses_of(batch_ids: Sequence[int]) -> dict[int, str]:
    """Return statuses by batch; deleted batches are missing."""
    return dict(Batch.objects.filter(pk__in=batch_ids).values_list("pk", "status"))


def pending_rows(batch_id: int, *, limit: int, skip: frozenset[int]) -> list[PendingRow]:
    """Return the next due rows in order, without the few dozen in `skip`."""
    due = Q(not_before=None) | Q(not_before__lte=timezone.now())
    found = (
        Item.objects.filter(due, batch_id=batch_id, status=ItemStatus.PENDING, code="")
        .order_by("index")
        .values_list("pk", "batch_id", "index", "attempts", "input")[: limit + len(skip)]
    )
    return [PendingRow(*values) for values in found if values[0] not in skip][:limit]


def server_of(server_id: int) -> Server | None:
    return Server.objects.filter(pk=server_id).first()


def has_work(server_id: int) -> bool:
    return Batch.objects.filter(server_id=server_id, status__in=ACTIVE).exists()


def has_orphans(server_id: int) -> bool:
    """True if rows run in a job that was paused or cancelled when its pump died."""
    return Item.objects.filter(
        batch__in=Batch.objects.filter(server_id=server_id).exclude(status__in=ACTIVE),
        status=ItemStatus.RUNNING,
    ).exists()
