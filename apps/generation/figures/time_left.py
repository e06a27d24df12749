"""How long a running job still takes, as a range."""

from dataclasses import dataclass

from apps.batch.services import Progress

MIN_ROWS = 20
"""Finished rows before anything is estimated."""
MIN_SPREAD = 0.1


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """Seconds to the end: what is likely, the least and the most."""

    likely: float
    least: float
    most: float


def time_left(progress: Progress, active_seconds: float) -> TimeLeft | None:
    """Estimate from the rate of the last seconds and of the whole job; None before `MIN_ROWS`.

    The range narrows with the square root of the finished rows, to a tenth.

    Args:
        active_seconds: time in which rows were in flight.
    """
    eta, rate, finished = progress.eta_s, progress.rows_per_s, progress.finished
    if eta is None or not rate or finished < MIN_ROWS or active_seconds <= 0:
        return None
    overall = eta * rate * active_seconds / finished
    spread = max(MIN_SPREAD, 2 / finished**0.5)
    return TimeLeft(eta, min(eta, overall) * (1 - spread), max(eta, overall) * (1 + spread))
