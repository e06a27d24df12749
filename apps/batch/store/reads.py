"""Reading jobs and rows for a pump."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import CharField, Max, Q
from django.db.models.functions import MD5

from apps.batch.models import ACTIVE, OPEN, Batch, BatchServer, Item, ItemStatus
from apps.core.schemas.json_types import JsonObject
from apps.servers.models import Server


def active_batches(server_id: int) -> list[tuple[Batch, str]]:
    """Return active batches with a hash of their spec; the large spec is read when it is needed."""
    batches = Batch.objects.filter(_worked_on_by(server_id), status__in=ACTIVE).order_by("pk")
    hashed = batches.defer("spec").annotate(hashed=MD5("spec", output_field=CharField()))
    hashed = hashed.prefetch_related("servers")
    return [(batch, batch.hashed) for batch in hashed]


def _worked_on_by(server_id: int) -> Q:
    shared = BatchServer.objects.filter(server=server_id).values("batch")
    return Q(server_id=server_id) | Q(pk__in=shared)


def spec_of(batch_id: int) -> JsonObject:
    spec: JsonObject = Batch.objects.values_list("spec", flat=True).get(pk=batch_id)
    return spec


def statuses_of(batch_ids: Sequence[int]) -> dict[int, str]:
    """Return statuses by batch; deleted batches are missing."""
    return dict(Batch.objects.filter(pk__in=batch_ids).values_list("pk", "status"))


def last_finished(batch_id: int) -> datetime | None:
    """Return when the last row of a job without open rows was finished; None with open rows."""
    rows = Item.objects.filter(batch=batch_id)
    if rows.filter(status__in=OPEN).exists():
        return None
    last: datetime | None = rows.aggregate(last=Max("finished"))["last"]
    return last


def server_of(server_id: int) -> Server | None:
    return Server.objects.filter(pk=server_id).first()


def has_work(server_id: int) -> bool:
    return Batch.objects.filter(_worked_on_by(server_id), status__in=ACTIVE).exists()


def has_orphans(server_id: int) -> bool:
    """True if rows run in a job that was paused or cancelled when its pump died."""
    running = Item.objects.filter(server=server_id, finished=None, status=ItemStatus.RUNNING)
    return running.exclude(batch__status__in=ACTIVE).exists()
