"""Tells a server that fails from a row that fails (pure).

A row that fails is tried three times. When one row after the other fails and none comes through,
it is the server: no further row pays for it, and rows start again slowly.
"""

import random
from dataclasses import dataclass, field

# So many different rows in a row.
ROWS = 5
PAUSE_SECONDS = (0.5, 30.0)


@dataclass
class Breaker:
    failed: set[int] = field(default_factory=set)
    """Rows that failed since one last came through."""
    at_most: int | None = None
    """How many rows may be in flight while the server is tried again; None: all."""
    _pause: float = PAUSE_SECONDS[0]

    @property
    def is_trusted(self) -> bool:
        """Whether rows came through, or some seconds passed without a failure."""
        return self.at_most is None or self.at_most > 2

    def row_failed(self, row: int) -> bool:
        """Whether it is the server's fault by now, so that the attempt does not count."""
        self.failed.add(row)
        return len(self.failed) >= ROWS

    def row_came_through(self) -> None:
        self.failed.clear()
        self.at_most = None
        self._pause = PAUSE_SECONDS[0]

    def pause(self) -> float:
        """Seconds until the server is asked again: longer each time, until a row comes through."""
        seconds = self._pause * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
        self._pause = min(2 * self._pause, PAUSE_SECONDS[1])
        return seconds

    def begin_slowly(self) -> None:
        """It says that it is ready, which is not to be believed at once."""
        self.at_most = 1

    def tick(self) -> None:
        """A second has passed without a failure: a row may take minutes."""
        if self.at_most is not None:
            self.at_most *= 2
