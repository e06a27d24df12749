"""Storing throughput points and concurrency probes."""

from collections.abc import Mapping
from datetime import timedelta

from django.utils import timezone

from apps.batch.models import Batch, ThroughputHistory
from apps.batch.scheduler.concurrency_probe import ProbeResult
from apps.batch.scheduler.throughput import Point, append_point
from apps.batch.store.leases import Lease, fence

PROBE_VALID = timedelta(days=7)


def append_points(lease: Lease, points: Mapping[int, Point]) -> None:
    """Append one point to the history of each batch."""
    with fence(lease):
        existing = set(Batch.objects.filter(pk__in=points).values_list("pk", flat=True))
        for batch_id in sorted(existing):
            history, _ = ThroughputHistory.objects.get_or_create(batch_id=batch_id)
            known = [Point.from_json(point) for point in history.points]
            history.points = [point.to_json() for point in append_point(known, points[batch_id])]
            history.save(update_fields=["points"])


def store_probe(lease: Lease, batch_id: int, result: ProbeResult) -> None:
    with fence(lease):
        if Batch.objects.filter(pk=batch_id).exists():
            values = {"probe": result.to_json(), "probed_at": timezone.now()}
            ThroughputHistory.objects.update_or_create(batch_id=batch_id, defaults=values)


def recent_probe(server_id: int, model: str, slots: int) -> ProbeResult | None:
    """Return the last probe of a model on the same slots; None after `PROBE_VALID`."""
    last = ThroughputHistory.objects.filter(
        batch__server_id=server_id,
        probed_at__gte=timezone.now() - PROBE_VALID,
        probe__model=model,
        probe__slots=slots,
    ).order_by("-probed_at")
    stored = last.values_list("probe", flat=True).first()
    return None if stored is None else ProbeResult.from_json(stored)
