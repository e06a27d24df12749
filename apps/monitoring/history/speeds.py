"""The generation speed of each model by the hour, of the last day and of the week before it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from apps.monitoring.history.store import DAY, HOUR
from apps.monitoring.models import Sample
from apps.tuning.hooks import HOURS, Speeds

# An hour with fewer tokens than these says little.
LEAST_TOKENS = 200


def read_speeds(servers: Iterable[int], now: int) -> Mapping[tuple[int, str], Speeds]:
    """Return the speeds by server and model. Blocks."""
    rows = (
        Sample.objects.filter(server__in=list(servers), step=HOUR, timed__gte=LEAST_TOKENS)
        .filter(start__gte=now - HOURS * HOUR - 7 * DAY, timed_ms__gt=0)
        .exclude(model="")
        .values_list("server", "model", "start", "timed", "timed_ms", "busy", "readings")
    )
    hours: dict[tuple[int, str], list[tuple[bool, float, float]]] = defaultdict(list)
    for server, model, start, timed, timed_ms, busy, readings in rows:
        is_now = start >= now - HOURS * HOUR
        busy_slots = busy / readings if readings else 0.0
        hours[server, model].append((is_now, timed / timed_ms * 1000, busy_slots))
    return {place: _speeds(found) for place, found in hours.items()}


def _speeds(hours: list[tuple[bool, float, float]]) -> Speeds:
    now = [(speed, busy) for is_now, speed, busy in hours if is_now]
    before = [(speed, busy) for is_now, speed, busy in hours if not is_now]
    return Speeds(
        tuple(speed for speed, _ in now),
        tuple(speed for speed, _ in before),
        sum(busy for _, busy in now) / max(1, len(now)),
        sum(busy for _, busy in before) / max(1, len(before)),
    )
