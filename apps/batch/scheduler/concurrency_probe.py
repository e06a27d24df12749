"""Probe at the start of a job: tokens/s with 1, half and all slots in use (pure).

More rows in parallel are usually faster, but not always: memory bandwidth may limit them, and
speculative decoding may stop paying off. The probe compares the number of parallel rows times the
tokens/s of a row. Rows differ in length, so counting finished rows in a few seconds says little.
"""

from dataclasses import dataclass, field
from typing import TypedDict

STEP_SECONDS = 3.0
STEP_ROWS = 3
MAX_STEP_SECONDS = 30.0
# A few rows give rough figures: fewer slots are used only if they are clearly faster.
CLEARLY_FASTER = 1.1


class ProbeJson(TypedDict):
    """A `ProbeResult` as it is stored."""

    model: str
    slots: int
    rates: dict[str, float]
    best: int


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Tokens/s by rows in parallel, for one model on a number of slots."""

    model: str
    slots: int
    rates: dict[int, float]
    best: int

    @classmethod
    def from_json(cls, data: ProbeJson) -> "ProbeResult":
        rates = {int(width): rate for width, rate in data["rates"].items()}
        return cls(data["model"], data["slots"], rates, data["best"])

    def to_json(self) -> ProbeJson:
        rates = {str(width): rate for width, rate in self.rates.items()}
        return {"model": self.model, "slots": self.slots, "rates": rates, "best": self.best}

    @property
    def limit(self) -> int | None:
        """Max rows in parallel; None if all slots are best."""
        return self.best if self.best < self.slots else None


def probe_steps(slots: int) -> list[int]:
    """Return the numbers of parallel rows to measure, ascending."""
    return sorted({1, (slots + 1) // 2, slots})


@dataclass
class ConcurrencyProbe:
    """Measures one step after the other on the rows of a job."""

    slots: int
    now: float
    rates: dict[int, float] = field(default_factory=dict)
    """Tokens/s by rows in parallel."""

    def __post_init__(self) -> None:
        self._steps = probe_steps(self.slots)
        self._start_step(self.now)

    @property
    def width(self) -> int | None:
        """Max rows in parallel now; None after the last step."""
        return self._steps[0] if self._steps else None

    def row_started(self, row: int, now: float) -> None:
        if self.width is not None:
            self._started[row] = now

    def row_finished(self, row: int, tokens: int, now: float) -> bool:
        """Count a finished row. Returns True if it ended the probe."""
        started = self._started.pop(row, None)  # None: started in an earlier step
        if self.width is None:
            return False
        if started is not None:
            self._rows += 1
            self._tokens += tokens
            self._seconds += now - started
        elapsed = now - self._step_start
        enough = self._rows >= max(STEP_ROWS, self.width) and elapsed >= STEP_SECONDS
        if not enough and not (self._rows and elapsed >= MAX_STEP_SECONDS):
            return False
        if self._seconds and self._tokens:
            self.rates[self.width] = self.width * self._tokens / self._seconds
        del self._steps[0]
        self._start_step(now)
        return not self._steps

    def _start_step(self, now: float) -> None:
        self._step_start = now
        self._started: dict[int, float] = {}
        self._rows = self._tokens = 0
        self._seconds = 0.0

    def result(self, model: str) -> ProbeResult | None:
        """Return the measurement; None if a step gave no tokens."""
        if len(self.rates) < len(probe_steps(self.slots)):
            return None
        rates = {width: round(rate, 1) for width, rate in self.rates.items()}
        return ProbeResult(model, self.slots, rates, best_width(self.rates))


def best_width(rates: dict[int, float]) -> int:
    """Return the largest number of rows, unless a smaller one is clearly faster."""
    widest = max(rates)
    fastest = max(rates, key=lambda width: rates[width])
    return fastest if rates[fastest] >= CLEARLY_FASTER * rates[widest] else widest
