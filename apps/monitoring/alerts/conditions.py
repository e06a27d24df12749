"""Which problems there are now. Each is a sentence with its evidence."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings

from apps.batch.services import stalled_batches
from apps.core.templatetags.formats import percent
from apps.monitoring.history import store
from apps.monitoring.history.measurement import Measurement, total
from apps.monitoring.history.store import DAY, HOUR
from apps.monitoring.models import AlertKind
from apps.servers.models import Server, State
from apps.servers.services import read_health

# A server that restarts is not gone.
GONE_AFTER = timedelta(seconds=60)
STALLED_AFTER = timedelta(minutes=30)
LEAST_DISK_BYTES = 1024**3
# The last hour against the week before it. With fewer tokens than these, chance decides.
SLOWER_SHARE = 0.6
LEAST_TIMED_TOKENS = 2_000
FALLEN_BY = 0.3
LEAST_REPORTED_TOKENS = 20_000
# More loads than these in ten minutes: programs take turns with models, and each turn loads one.
MOST_LOADS = 6
LOADS_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Problem:
    kind: AlertKind
    subject: str
    text: str


def find_problems(moment: float) -> list[Problem]:
    """All problems at this Unix time. Blocks."""
    now = datetime.fromtimestamp(moment, UTC)
    servers = list(Server.objects.all())
    health = read_health(servers)
    found: list[Problem] = []
    for server in servers:
        state, since = health[server.pk].state, health[server.pk].since
        found += _away(server, state, since, now)
        found += _worse(server, moment)
        found += _swapping(server, moment)
    return [*found, *_stalled_jobs(now), *_low_disk()]


def _away(server: Server, state: State, since: datetime | None, now: datetime) -> Iterator[Problem]:
    """A server that is known and does not answer, or takes requests and returns no token."""
    subject = f"server:{server.pk}"
    was_known = bool(server.model_facts)
    if state == State.UNREACHABLE and was_known and since and now - since >= GONE_AFTER:
        yield Problem(AlertKind.GONE, subject, f"“{server}” does not answer.")
    if state == State.STUCK:
        text = f"“{server}” reports that it is ready, but returns no tokens. Restart it."
        yield Problem(AlertKind.STUCK, subject, text)


def _worse(server: Server, moment: float) -> Iterator[Problem]:
    """A server that is slower than in the week before, or finds less in its prompt cache."""
    hour = _sum(server, int(moment) - HOUR, int(moment), 300)
    # Up to a full hour: the row of the hour in which the last 60 minutes began has some of them.
    week = _sum(server, int(moment) - 7 * DAY, store.start_of(moment - HOUR, HOUR), HOUR)
    subject = f"server:{server.pk}"
    if min(hour.timed, week.timed) >= LEAST_TIMED_TOKENS:
        speed, before = hour.speed or 0.0, week.speed or 0.0
        if speed < SLOWER_SHARE * before:
            text = f"“{server}” generates {speed:.0f} tokens/s, {before:.0f} in the week before."
            yield Problem(AlertKind.SLOWER, subject, text)
    if min(hour.reported, week.reported) >= LEAST_REPORTED_TOKENS:
        share, before = hour.cache_share or 0.0, week.cache_share or 0.0
        if share < before - FALLEN_BY:
            text = (
                f"“{server}” finds {percent(share)} of the prompt tokens in its prompt cache, "
                f"{percent(before)} in the week before."
            )
            yield Problem(AlertKind.CACHE, subject, text)


def _swapping(server: Server, moment: float) -> Iterator[Problem]:
    """A server that does little else but load models."""
    if not server.swaps:
        return
    loads = _sum(server, int(moment) - LOADS_SECONDS, int(moment), 30).loads
    if loads > MOST_LOADS:
        text = (
            f"“{server}” has loaded models {loads} times in ten minutes, or more often. Requests"
            " for two models take turns: use one, or keep both in memory."
        )
        yield Problem(AlertKind.SWAPS, f"server:{server.pk}", text)


def _sum(server: Server, since: int, until: int, step: int) -> Measurement:
    return total(store.read(server, since=since, until=until, step=step))


def _stalled_jobs(now: datetime) -> Iterator[Problem]:
    """Jobs with open rows of which none was finished for a while, if they do not wait for a day."""
    for batch in stalled_batches(now - STALLED_AFTER):
        reason = f" {batch.reason}" if batch.reason else ""
        text = f"The job “{batch.name}” has finished no row for 30 minutes.{reason}"
        yield Problem(AlertKind.STALLED, f"job:{batch.pk}", text)


def _low_disk() -> Iterator[Problem]:
    free = shutil.disk_usage(settings.DATA_DIR).free
    if free < LEAST_DISK_BYTES:
        text = f"Only {free // 1024**2:,} MB left on the disk of the data folder."
        yield Problem(AlertKind.DISK, "disk", text)
