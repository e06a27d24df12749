"""The stacked bar of memory by part, as percentages for SVG (pure)."""

from dataclasses import dataclass

from apps.tuning.planner.plan import Plan
from apps.tuning.planner.plan_text import NOT_REPORTED, size_text


@dataclass(frozen=True, slots=True)
class BarPart:
    name: str
    number: int
    """Names its colour."""
    size: str
    estimate: bool
    start: str
    width: str


@dataclass(frozen=True, slots=True)
class MemoryBar:
    parts: list[BarPart]
    limit: str
    """Where the memory of the hardware ends."""


def memory_bar(plan: Plan) -> MemoryBar:
    available = plan.request.hardware.available_bytes
    whole = max(plan.needed_bytes, available)
    parts, start = [], 0
    for number, part in enumerate(plan.parts, start=1):
        size = part.bytes or 0
        parts.append(
            BarPart(
                part.name,
                number,
                NOT_REPORTED if part.bytes is None else size_text(size),
                part.estimate,
                _percent(start, whole),
                _percent(size, whole),
            )
        )
        start += size
    return MemoryBar(parts, _percent(available, whole))


def _percent(size: int, whole: int) -> str:
    return f"{100 * size / whole:.2f}%"
