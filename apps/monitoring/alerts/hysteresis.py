"""When a problem becomes an alert, and when the alert is over: not at the first check. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from apps.monitoring.models import AlertKind

# Checks further apart than this say nothing about the time between: no worker ran.
LONGEST_GAP = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Patience:
    """Checks in a row, one every 30 seconds."""

    to_begin: int
    to_end: int


USUAL = Patience(to_begin=3, to_end=4)
# They compare an hour with a week: a value near the limit crosses it often.
OF_AVERAGES = Patience(to_begin=6, to_end=20)
PATIENCE = {AlertKind.SLOWER: OF_AVERAGES, AlertKind.CACHE: OF_AVERAGES}


@dataclass(frozen=True, slots=True)
class Run:
    """Checks in a row that contradict what the alerts say: a new problem, or one that is gone."""

    first: datetime
    latest: datetime
    checks: int = 1

    def extended(self, now: datetime) -> "Run":
        """Return this run with one check more; a new run after a gap."""
        if now - self.latest > LONGEST_GAP:
            return Run(now, now)
        return Run(self.first, now, self.checks + 1)

    def is_enough(self, kind: AlertKind, *, is_open: bool) -> bool:
        """True if the alert begins now, or ends if it is open."""
        patience = PATIENCE.get(kind, USUAL)
        return self.checks >= (patience.to_end if is_open else patience.to_begin)
