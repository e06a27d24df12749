"""Throughput of the jobs of one pump over time, and their best number of parallel rows."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from django.utils import timezone

from apps.batch.handlers import RowOutcome
from apps.batch.models import Batch, ThroughputHistory
from apps.batch.pump.active_job import ActiveJob
from apps.batch.pump.active_jobs import ActiveJobs
from apps.batch.scheduler.concurrency_probe import ConcurrencyProbe, ProbeResult
from apps.batch.scheduler.throughput import Point, append_point
from apps.batch.store.leases import Lease, fence
from apps.batch.store.row_events import PendingRow
from apps.runtime.async_db import in_db
from apps.servers.models import Server

BUCKET_SECONDS = 5.0  # of one point
# A shorter job ends before a probe has paid off.
MIN_PROBE_ROWS = 200
PROBE_VALID = timedelta(days=7)


@dataclass
class ThroughputMeter:
    """Sums up the work of a pump's jobs between two points, by batch."""

    start: float
    """Unix time."""
    _points: dict[int, Point] = field(default_factory=dict)

    def add_time(self, now: float, seconds: float, slots: dict[int, int]) -> None:
        """Add elapsed time with the slots that each job used."""
        for batch_id, count in slots.items():
            point = self._point(batch_id, now - seconds)
            point.busy_seconds += seconds
            point.slot_seconds += count * seconds

    def add_row(self, batch_id: int, tokens: int) -> None:
        point = self._point(batch_id, self.start)
        point.rows += 1
        point.tokens += tokens

    def _point(self, batch_id: int, start: float) -> Point:
        if batch_id not in self._points:
            self._points[batch_id] = Point(start)
        return self._points[batch_id]

    def take_points(self, now: float) -> dict[int, Point]:
        """Return the points since the last call and start new ones."""
        self.start = now
        points, self._points = self._points, {}
        return {
            batch_id: point
            for batch_id, point in points.items()
            if point.slot_seconds or point.rows
        }


class PumpMetrics:
    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._meter = ThroughputMeter(time.time())
        self._probe: tuple[ActiveJob, ConcurrencyProbe] | None = None

    # --- Rows ----------------------------------------------------------------

    def row_started(self, row: PendingRow) -> None:
        if self._probe is not None:
            self._probe[1].row_started(row.pk, time.monotonic())

    def row_finished(self, row: PendingRow, outcome: RowOutcome) -> None:
        self._meter.add_row(row.batch_id, outcome.usage.completion_tokens)
        if self._probe is not None:
            self._probe[1].row_finished(row.pk, outcome.written, time.monotonic())

    # --- Throughput ----------------------------------------------------------

    def add_time(self, seconds: float, jobs: Iterable[ActiveJob]) -> None:
        slots = {job.id: job.slots_held for job in jobs if job.slots_held}
        self._meter.add_time(time.time(), seconds, slots)

    async def store_due_points(self) -> None:
        if time.time() - self._meter.start >= BUCKET_SECONDS:
            await self.store_points()

    async def store_points(self) -> None:
        if points := self._meter.take_points(time.time()):
            await in_db(append_points, self._lease, points)

    # --- Parallel rows -------------------------------------------------------

    def limit_width(self, width: int) -> int:
        """Limit the rows in flight while a probe runs."""
        step = self._probe[1].width if self._probe is not None else None
        return width if step is None else min(width, step)

    async def start_probe(self, job: ActiveJob, jobs: ActiveJobs, server: Server) -> None:
        """Use what a person had measured, or a recent probe, or start one if the job is alone."""
        slots = server.slots_of(job.model)
        if job.width is not None or slots < 2 or server.measures_slots(job.model):
            return
        if (best := server.best_width_of(job.model)) is not None:
            job.best_width = best if best < slots else None
            return
        recent = await in_db(recent_probe, server.pk, job.model, slots)
        if recent is not None:
            job.best_width = recent.limit
        elif job.rows >= MIN_PROBE_ROWS and job.is_home and len(jobs) == 1 and not server.swaps:
            self._probe = (job, ConcurrencyProbe(slots, time.monotonic()))

    async def finish_probe(self, jobs: ActiveJobs) -> None:
        """Store a finished probe, or drop one that other jobs would distort."""
        if self._probe is None:
            return
        job, probe = self._probe
        if probe.width is None:
            self._probe = None
            if (result := probe.result(job.model)) is not None:
                job.best_width = result.limit
                await in_db(store_probe, self._lease, job.id, result)
        elif jobs.find(job.id) is not job or len(jobs) > 1 or job.width is not None:
            self._probe = None


def append_points(lease: Lease, points: Mapping[int, Point]) -> None:
    """Append one point to the history of each batch."""
    with fence(lease):
        existing = set(Batch.objects.filter(pk__in=points).values_list("pk", flat=True))
        for batch_id in sorted(existing):
            ThroughputHistory.objects.get_or_create(batch_id=batch_id)
            # Several servers may work on it.
            history = ThroughputHistory.objects.select_for_update().get(batch_id=batch_id)
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
