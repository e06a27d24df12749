"""The metrics of /metrics. All are read from Redis and the database, whichever process answers."""

from collections.abc import Iterator, Mapping

from django.db.models import Count
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from apps.batch.services import count_active_rows
from apps.llm.permits import FIRST_TOKEN_BOUNDS_MS, Counts, read_loads, read_totals
from apps.monitoring.services import read_gauges
from apps.servers.models import Server, State
from apps.servers.services import read_health
from apps.work.models import ACTIVE as ACTIVE_TASKS
from apps.work.models import Task

COUNTERS = {
    "requests": "Answered requests of Workbench.",
    "failed_requests": "Requests that ended with an error of the server.",
    "prompt_tokens": "Prompt tokens, those from the prompt cache included.",
    "cached_tokens": "Prompt tokens that came from the prompt cache.",
    "reported_tokens": "Prompt tokens of answers that reported how many were cached.",
    "generated_tokens": "Generated tokens.",
}
_COUNTS = dict(
    zip(COUNTERS, ("requests", "failed", "prompt", "cached", "reported", "completion"), strict=True)
)


def exposition() -> bytes:
    """All metrics in the text format of Prometheus. Blocks.

    Raises:
        RedisError: the counters cannot be read.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(WorkbenchCollector())
    return generate_latest(registry)


class WorkbenchCollector(Collector):
    def collect(self) -> Iterator[Metric]:
        servers = list(Server.objects.all())
        yield from _counters(servers)
        yield from _gauges(servers)
        yield from _work()
        for name, text, value in read_gauges():
            yield GaugeMetricFamily(f"workbench_{name}", text, value=value)


def _counters(servers: list[Server]) -> Iterator[Metric]:
    totals = read_totals([server.pk for server in servers])
    labels = ["server", "model"]
    families = {
        name: CounterMetricFamily(f"workbench_{name}", text, labels=labels)
        for name, text in COUNTERS.items()
    }
    first_tokens = HistogramMetricFamily(
        "workbench_time_to_first_token_seconds",
        "Seconds from sending a chat request to its first token.",
        labels=labels,
    )
    for server in servers:
        for model, counts in totals[server.pk].items():
            for name, family in families.items():
                family.add_metric([server.name, model], counts[_COUNTS[name]])
            buckets, seconds = _histogram(counts)
            first_tokens.add_metric([server.name, model], buckets, seconds)
    yield from families.values()
    yield first_tokens


def _histogram(counts: Counts) -> tuple[list[tuple[str, float]], float]:
    """Cumulated counts by upper bound in seconds, and the sum of all times in seconds."""
    buckets, seen = [], 0
    bounds = [*(str(bound / 1000) for bound in FIRST_TOKEN_BOUNDS_MS), "+Inf"]
    for number, bound in enumerate(bounds):
        seen += counts[f"first_{number}"]
        buckets.append((bound, float(seen)))
    return buckets, counts["first_ms"] / 1000


def _gauges(servers: list[Server]) -> Iterator[Metric]:
    pks = [server.pk for server in servers]
    loads, health = read_loads(pks), read_health(servers)
    up = GaugeMetricFamily("workbench_server_up", "1 if the server is ready.", labels=["server"])
    slots = GaugeMetricFamily("workbench_slots", "Slots for one model.", labels=["server"])
    busy = GaugeMetricFamily("workbench_busy_slots", "Slots in use by us.", labels=["server"])
    queue = GaugeMetricFamily(
        "workbench_waiting_requests", "People's requests that wait for a slot.", labels=["server"]
    )
    for server in servers:
        up.add_metric([server.name], health[server.pk].state == State.READY)
        slots.add_metric([server.name], server.slots)
        busy.add_metric([server.name], loads[server.pk].held.total())
        queue.add_metric([server.name], loads[server.pk].waiting.total())
    yield from (up, slots, busy, queue)


def _work() -> Iterator[Metric]:
    """Rows of the jobs that are not finished, and the tasks of workers."""
    yield _by_label(
        "workbench_job_rows",
        "Rows of queued and running jobs.",
        "status",
        count_active_rows(),
    )
    tasks = Task.objects.filter(state__in=ACTIVE_TASKS)
    yield _by_label(
        "workbench_tasks",
        "Queued and running tasks of workers.",
        "state",
        dict(tasks.values_list("state").annotate(Count("pk")).order_by()),
    )


def _by_label(name: str, text: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, count in counts.items():
        family.add_metric([value], count)
    return family
