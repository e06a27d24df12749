"""Whose row is next: deficit round robin over jobs, in tokens (pure)."""

from bisect import bisect_right
from collections.abc import Mapping

# A turn is long enough to stay on one prompt prefix for a run of rows, and short enough that the
# other job is back within seconds.
QUANTUM_TOKENS = 4000
FIRST_GUESS_TOKENS = 200
SMOOTHING = 0.2


class Turns:
    """Each job gets `weight` times the quantum in a turn and pays for its rows in tokens.

    What a row costs is known when it ends, so it is charged what the job's rows cost lately and
    the difference is settled afterwards.
    """

    def __init__(self, quantum: float = QUANTUM_TOKENS) -> None:
        self._quantum = quantum
        self._credit: dict[int, float] = {}
        self._cost: dict[int, float] = {}
        self._current: int | None = None

    def pick(self, weights: Mapping[int, int]) -> int:
        """The job whose row starts now, of the jobs (id to weight) that have one ready."""
        self._credit = {job: self._credit.get(job, 0.0) for job in weights}
        current = self._current
        if current is not None and self._credit.get(current, 0.0) > 0:
            return current
        self._skip_rounds(weights)
        order = sorted(weights)
        at = 0 if current is None else bisect_right(order, current)
        while True:
            job = order[at % len(order)]
            self._credit[job] += self._quantum * weights[job]
            if self._credit[job] > 0:
                self._current = job
                return job
            at += 1

    def _skip_rounds(self, weights: Mapping[int, int]) -> None:
        """All rounds at once after which nobody has credit yet: a row may have cost millions."""
        turns = (-self._credit[job] // (self._quantum * weights[job]) for job in weights)
        if (rounds := min(turns)) > 0:
            for job, weight in weights.items():
                self._credit[job] += rounds * self._quantum * weight

    def start(self, job: int) -> float:
        """Charges a row of `job` and returns what it was charged."""
        cost = self._cost.setdefault(job, FIRST_GUESS_TOKENS)
        self._credit[job] = self._credit.get(job, 0.0) - cost
        return cost

    def finish(self, job: int, *, charged: float, tokens: float) -> None:
        """Settles what the row cost in truth."""
        if job in self._credit:
            self._credit[job] -= tokens - charged
        self._cost[job] = (1 - SMOOTHING) * self._cost.get(job, tokens) + SMOOTHING * tokens
