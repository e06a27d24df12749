"""What a GPU reports about itself at one moment."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    memory_used: int
    """MiB, as `memory_total`."""
    memory_total: int
    name: str = ""
    """As its driver names it; "": not reported."""
    busy: float | None = None
    """The share of the last moments in which it computed, 0 to 1; None: not reported."""
    power: float | None = None
    """Watts; None: not reported."""
