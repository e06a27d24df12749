"""How far a sweep is, for those who wait for it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from apps.tuning.sweep.results import SweepResults

PAUSED = "Paused: the server is in use. It is measured only while nobody uses it."


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sweep is. `results` grow while it runs."""

    done: int
    planned: int
    doing: str
    results: SweepResults


OnProgress = Callable[[Progress], Awaitable[None]]
