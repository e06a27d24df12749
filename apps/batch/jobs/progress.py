"""Reading a job: its rows, counts, speed and the reason why it waits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min, Q, QuerySet, Sum
from django.utils import timezone
from redis.exceptions import RedisError

from apps.batch import pump_heartbeat
from apps.batch.jobs.job_servers import RATE_WINDOW, servers_wait_reason
from apps.batch.models import (
    ACTIVE,
    FINISHED,
    OPEN,
    Batch,
    BatchServer,
    BatchStatus,
    Item,
    ItemStatus,
    ThroughputHistory,
)
from apps.batch.scheduler.concurrency_probe import ProbeResult
from apps.batch.scheduler.throughput import Point
from apps.servers.models import Kind

ALL_SLOTS = 10_000
AT_WORK = (BatchServer.State.WORKING, BatchServer.State.WAITING)
REPORT_CACHED = (Kind.LLAMA_SERVER, Kind.ROUTER, Kind.LLAMA_SWAP)
NO_WORKER = (
    "Waiting for a worker: no process runs jobs now. An admin starts one with "
    "“manage.py run_pumps”."
)


def rows_of(batch_id: int) -> QuerySet[Item]:
    return Item.objects.filter(batch_id=batch_id)


def accepted_rows_since(batch_id: int, since: datetime | None, index: int) -> QuerySet[Item]:
    """Query the rows accepted after a row, in order of acceptance; all rows if `since` is None."""
    items = rows_of(batch_id).filter(status=ItemStatus.ACCEPTED)
    if since is not None:
        items = items.filter(Q(finished__gt=since) | Q(finished=since, index__gt=index))
    return items.order_by("finished", "index")


def has_accepted_row(batch_id: int, fingerprint: str, *, other_than: int) -> bool:
    """True if another accepted row of the batch has this fingerprint."""
    found = rows_of(batch_id).filter(status=ItemStatus.ACCEPTED, fingerprint=fingerprint)
    return found.exclude(pk=other_than).exists()


@dataclass(frozen=True)
class Progress:
    """Counts and speed. Rates cover the last seconds of a running job, else the whole job."""

    counts: dict[str, int]
    total: int
    goal: int | None
    reasons: list[tuple[str, str, int]]
    """(status, code, rows) of rejected and failed rows, most frequent first."""
    rows_per_s: float | None
    tokens_per_s: float | None
    eta_s: float | None
    cached_share: float | None
    """None where the server does not report it."""
    width: int

    @property
    def finished(self) -> int:
        return sum(self.counts[status] for status in FINISHED)

    @property
    def wanted(self) -> int:
        return self.total if self.goal is None else self.goal

    @property
    def open(self) -> int:
        return sum(self.counts[status] for status in OPEN)


def compute_progress(batch: Batch) -> Progress:
    """Count rows and estimate speed: two queries for any number of rows."""
    grouped = list(
        rows_of(batch.pk).values_list("status", "code").annotate(rows=Count("pk")).order_by("-rows")
    )
    counts = dict.fromkeys(ItemStatus.values, 0)
    for status, _, rows in grouped:
        counts[status] += rows
    bad = (ItemStatus.REJECTED, ItemStatus.FAILED)
    rows_per_s, tokens_per_s = _rates(batch, sum(counts[status] for status in FINISHED))
    running = batch.status == BatchStatus.RUNNING
    return Progress(
        counts=counts,
        total=batch.total,
        goal=batch.goal,
        reasons=[(status, code, rows) for status, code, rows in grouped if status in bad],
        rows_per_s=rows_per_s,
        tokens_per_s=tokens_per_s,
        eta_s=_eta_seconds(batch.goal, counts, rows_per_s) if running else None,
        cached_share=_cached_share(batch),
        width=_parallel_rows(batch),
    )


def reports_cached_tokens(batch: Batch) -> bool:
    """True if the server reports cached prompt tokens: a server that does not sends no 0."""
    is_llama = batch.server is not None and batch.server.kind in REPORT_CACHED
    return is_llama or batch.cached_tokens > 0


def _cached_share(batch: Batch) -> float | None:
    if not batch.prompt_tokens or not reports_cached_tokens(batch):
        return None
    return batch.cached_tokens / batch.prompt_tokens


def _parallel_rows(batch: Batch) -> int:
    """Return how many rows may be in flight, at all servers that work on the batch now."""
    if batch.server is None:
        return 0
    slots = batch.server.slots_of(batch.model)
    if batch.all_servers or batch.may_fall_back:
        at_work = batch.servers.filter(state__in=AT_WORK).select_related("server")
        own = [entry for entry in at_work if not entry.is_fallback] or at_work
        slots = sum(entry.server.slots_of(entry.model) for entry in own) or slots
    return min(batch.width or ALL_SLOTS, slots)


def _eta_seconds(
    goal: int | None, counts: dict[str, int], rows_per_s: float | None
) -> float | None:
    """Estimate the seconds to the end; with a goal, from the share of rows accepted so far."""
    if not rows_per_s:
        return None
    if goal is None:
        return sum(counts[status] for status in OPEN) / rows_per_s
    accepted = counts[ItemStatus.ACCEPTED]
    if not accepted:
        return None
    finished = sum(counts[status] for status in FINISHED)
    return max(0, goal - accepted) / (rows_per_s * accepted / finished)


def _rates(batch: Batch, finished: int) -> tuple[float | None, float | None]:
    """Return rows and output tokens per second; None where not known or not reported."""
    if batch.status == BatchStatus.RUNNING:
        now = timezone.now()
        recent = (
            rows_of(batch.pk)
            .filter(finished__gte=now - RATE_WINDOW)
            .aggregate(rows=Count("pk"), tokens=Sum("completion_tokens"), first=Min("finished"))
        )
        seconds = (now - recent["first"]).total_seconds() if recent["first"] else 0.0
        if recent["rows"] > 1 and seconds > 1:
            return (recent["rows"] - 1) / seconds, recent["tokens"] / seconds or None
    if not finished or batch.active_seconds <= 0:
        return None, None
    return finished / batch.active_seconds, batch.completion_tokens / batch.active_seconds or None


def count_rows_by_status(batches: Sequence[Batch]) -> dict[int, dict[str, int]]:
    """Count the rows of several batches by status, in one query."""
    counts = {batch.pk: dict.fromkeys(ItemStatus.values, 0) for batch in batches}
    grouped = (
        Item.objects.filter(batch__in=counts)
        .values_list("batch", "status")
        .annotate(rows=Count("pk"))
        .order_by()
    )
    for batch_id, status, rows in grouped:
        counts[batch_id][status] = rows
    return counts


@dataclass(frozen=True, slots=True)
class Throughput:
    """Speed of a job over time, and the concurrency measured at its start."""

    points: list[Point]
    probe: ProbeResult | None


def throughput_of(batch_id: int) -> Throughput:
    stored = ThroughputHistory.objects.filter(batch=batch_id).first()
    if stored is None:
        return Throughput([], None)
    probe = None if stored.probe is None else ProbeResult.from_json(stored.probe)
    return Throughput([Point.from_json(point) for point in stored.points], probe)


def wait_reason(batch: Batch) -> str:
    """Return why a job waits, is paused or failed, as a sentence; "" if nothing is in its way."""
    if batch.status in ACTIVE and not batch.reason and (reason := servers_wait_reason(batch)):
        return reason
    if batch.reason or batch.status != BatchStatus.QUEUED:
        return batch.reason
    try:
        if not pump_heartbeat.is_pump_alive():
            return NO_WORKER
    except (RedisError, OSError):
        return "Waiting for Redis: it does not answer."
    return "Waiting for a free worker."
