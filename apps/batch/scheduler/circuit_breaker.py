"""Circuit breaker: separates a failing server from a failing row (pure).

A failing row gets three attempts. When different rows fail one after the other and none succeeds,
the server is at fault: no further row loses an attempt, and rows start again slowly.
"""

import random
from dataclasses import dataclass, field

FAILED_ROWS_TO_OPEN = 5
# From the first to the longest: a server that is back is used again within ten seconds.
PAUSE_SECONDS = (0.5, 8.0)


@dataclass
class CircuitBreaker:
    failed: set[int] = field(default_factory=set)
    """Rows that failed since the last success."""
    max_in_flight: int | None = None
    """Max rows in flight while the server recovers; None: no limit."""
    in_trouble: bool = False
    """True after a failure, until a row succeeds."""
    _pause: float = PAUSE_SECONDS[0]

    @property
    def is_trusted(self) -> bool:
        """True after a success, or after some seconds without a failure."""
        return self.max_in_flight is None or self.max_in_flight > 2

    def record_failure(self, row: int) -> bool:
        """Count a failed row. Returns True if the server is at fault and no attempt counts."""
        self.failed.add(row)
        self.in_trouble = True
        return len(self.failed) >= FAILED_ROWS_TO_OPEN

    def record_success(self) -> None:
        self.failed.clear()
        self.in_trouble = False
        self.max_in_flight = None
        self._pause = PAUSE_SECONDS[0]

    def next_pause(self) -> float:
        """Return the seconds until the next check; they double until a row succeeds."""
        seconds = self._pause * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
        self._pause = min(2 * self._pause, PAUSE_SECONDS[1])
        return seconds

    def half_open(self) -> None:
        """Let one row through: a server that reports ready may fail again."""
        self.max_in_flight = 1
        self.in_trouble = True

    def record_quiet_second(self) -> None:
        """Double the limit after a second without a failure: a row may take minutes."""
        if self.max_in_flight is not None:
            self.max_in_flight *= 2
