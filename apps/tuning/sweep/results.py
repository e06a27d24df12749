"""All that one sweep has measured, and its JSON (pure). Times in seconds, rates in tokens/s."""

import statistics
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from apps.tuning.sweep.figures import Point, knee
from apps.tuning.sweep.plan import Load

# A sequence keeps at least this share of its speed alone where people use the server too.
MIXED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of a chat."""

    first_token: float
    whole: float


@dataclass(frozen=True, slots=True)
class ChatTurns:
    """The same chat, with the prompt cache and without; each turn is the median of the rounds."""

    prompt_tokens: int | None
    """Of the last turn; None: not reported."""
    uncached: list[Turn]
    cached: list[Turn]

    @property
    def speed_up(self) -> float:
        """Average time to the first token, without and with the cache."""
        means = [statistics.fmean(turn.first_token for turn in turns) for turns in self._both]
        return means[0] / means[1]

    @property
    def _both(self) -> tuple[list[Turn], list[Turn]]:
        return self.uncached, self.cached


@dataclass(slots=True)
class SweepResults:
    """What is measured so far; `notes` say what is not, and why."""

    model: str
    slots: int
    context: int | None
    build: str = ""
    flags: str = ""
    """The command line of the server; "": not reported."""
    started: str = ""
    """ISO 8601."""
    seconds: float = 0.0
    answer_tokens: int = 0
    planned: int = 0
    points: list[Point] = field(default_factory=list)
    chat: ChatTurns | None = None
    probed: dict[int, float] = field(default_factory=dict)
    """Tokens/s by width, of requests as a job sends them."""
    best_width: int | None = None
    ubatches: dict[int, float] = field(default_factory=dict)
    """Prompt tokens/s by micro-batch (-ub), where Workbench can start the server again."""
    search_seconds: float = 0.0
    paused_seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def mixed_width(self) -> int | None:
        """The sequences of jobs that leave people a slot, and each half the speed it has alone.

        None: one slot alone, or not measured.
        """
        curve = self.curve("per_sequence")
        alone = curve.get(1)
        if alone is None or self.best_width is None or self.slots < 2:
            return None
        # One more than the rows: the person's.
        enough = [width - 1 for width, each in curve.items() if each >= MIXED_SHARE * alone]
        return max(1, min(self.best_width, self.slots - 1, max(enough)))

    @property
    def knee(self) -> int | None:
        """The number of sequences after which more bring little."""
        return knee(self.curve("generation_rate"))

    def curve(self, name: str, load: Load | None = None) -> dict[int, float]:
        """A figure of `Point` by width, of loads that are alike; the first kind if None."""
        kind = load or (self.points[0].load if self.points else None)
        found = {
            point.load.width: getattr(point, name)
            for point in self.points
            if kind is not None and is_alike(point.load, kind)
        }
        return {width: value for width, value in found.items() if value is not None}

    def to_json(self) -> dict[str, Any]:
        stored: dict[str, Any] = _ADAPTER.dump_python(self, mode="json")
        return stored

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "SweepResults":
        return _ADAPTER.validate_python(stored)


def is_alike(one: Load, other: Load) -> bool:
    """True if two loads differ in their number of sequences alone."""
    kinds = [(load.prompt_tokens, load.is_cached, load.is_json) for load in (one, other)]
    return kinds[0] == kinds[1]


_ADAPTER = TypeAdapter(SweepResults)
