"""Deficit round robin over jobs, in tokens (pure)."""

from bisect import bisect_right
from collections.abc import Mapping

# A turn is long enough to reuse one prompt prefix for several rows, and short enough that the
# next job starts within seconds.
QUANTUM_TOKENS = 4000
FIRST_GUESS_TOKENS = 200
SMOOTHING = 0.2


class FairQueue:
    """Gives each job `weight` quanta per turn and charges its rows in tokens.

    The cost of a row is known when it ends. At its start it is charged the recent average of its
    job; the difference is corrected at the end.
    """

    def __init__(self, quantum: float = QUANTUM_TOKENS) -> None:
        self._quantum = quantum
        self._credit: dict[int, float] = {}
        self._average: dict[int, float] = {}
        self._current: int | None = None

    def pick(self, weights: Mapping[int, int]) -> int:
        """Return the job whose row starts next.

        Args:
            weights: weight by job id, of the jobs that have a row ready.
        """
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

    def credit_of(self, job: int) -> float:
        """Return the tokens that a job may still spend in its turn."""
        return self._credit.get(job, 0.0)

    def _skip_rounds(self, weights: Mapping[int, int]) -> None:
        """Add all rounds at once that leave every job without credit: a row may cost millions."""
        turns = (-self._credit[job] // (self._quantum * weights[job]) for job in weights)
        if (rounds := min(turns)) > 0:
            for job, weight in weights.items():
                self._credit[job] += rounds * self._quantum * weight

    def charge(self, job: int) -> float:
        """Charge a row that starts. Returns the charged tokens."""
        cost = self._average.setdefault(job, FIRST_GUESS_TOKENS)
        self._credit[job] = self._credit.get(job, 0.0) - cost
        return cost

    def correct(self, job: int, *, charged: float, tokens: float) -> None:
        """Replace the charge of a finished row by its real cost."""
        if job in self._credit:
            self._credit[job] -= tokens - charged
        average = self._average.get(job, tokens)
        self._average[job] = (1 - SMOOTHING) * average + SMOOTHING * tokens
