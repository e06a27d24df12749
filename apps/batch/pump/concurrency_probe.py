"""At the start of a job: how fast is its server with 1, half and all of its slots in use? (pure)

More at once is mostly faster, but not always: memory may be too slow, a draft model may no longer
pay. What is compared is the width times the tokens a row gets a second: rows are of uneven length,
so counting those that happen to end in some seconds would say little.
"""

from dataclasses import dataclass, field
from typing import Any

STEP_SECONDS = 3.0
STEP_ROWS = 3
PATIENCE_SECONDS = 30.0
# A narrower width is taken only if it is clearly faster: the figures are of a few rows.
CLEARLY = 1.1


def steps(slots: int) -> list[int]:
    """The widths to try, the narrowest first."""
    return sorted({1, (slots + 1) // 2, slots})


@dataclass
class Trial:
    """One step after the other; `width` is how many rows may be in flight now."""

    slots: int
    now: float
    rates: dict[int, float] = field(default_factory=dict)
    """Tokens a second by width."""

    def __post_init__(self) -> None:
        self._left = steps(self.slots)
        self._begin(self.now)

    @property
    def width(self) -> int | None:
        """None when it is over."""
        return self._left[0] if self._left else None

    def begun(self, row: int, now: float) -> None:
        if self.width is not None:
            self._began[row] = now

    def ended(self, row: int, tokens: int, now: float) -> bool:
        """A row came back. Whether that was the last one of the trial."""
        began = self._began.pop(row, None)  # of an earlier step: unknown here
        if self.width is None:
            return False
        if began is not None:
            self._rows += 1
            self._tokens += tokens
            self._seconds += now - began
        lasted = now - self._since
        enough = self._rows >= max(STEP_ROWS, self.width) and lasted >= STEP_SECONDS
        if not enough and not (self._rows and lasted >= PATIENCE_SECONDS):
            return False
        if self._seconds and self._tokens:
            self.rates[self.width] = self.width * self._tokens / self._seconds
        del self._left[0]
        self._begin(now)
        return not self._left

    def _begin(self, now: float) -> None:
        self._since = now
        self._began: dict[int, float] = {}
        self._rows = self._tokens = 0
        self._seconds = 0.0

    def result(self, model: str) -> dict[str, Any] | None:
        """What is kept: None where nothing could be told."""
        if len(self.rates) < len(steps(self.slots)):
            return None
        rates = {str(width): round(rate, 1) for width, rate in self.rates.items()}
        best = best_of(self.rates)
        return {"model": model, "slots": self.slots, "rates": rates, "best": best}


def best_of(rates: dict[int, float]) -> int:
    """The widest, unless a narrower one is clearly faster."""
    widest = max(rates)
    fastest = max(rates, key=lambda width: rates[width])
    return fastest if rates[fastest] >= CLEARLY * rates[widest] else widest
