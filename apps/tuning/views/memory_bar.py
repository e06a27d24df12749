"""The stacked bar of memory by part, as percentages for SVG (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass

from apps.tuning.planner.memory import MemoryPart
from apps.tuning.planner.plan import Plan
from apps.tuning.planner.plan_text import NOT_REPORTED, describe_cache, size_text
from apps.tuning.planner.stack.stack_plan import StackPlan


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
    return _bar(plan.parts, plan.request.hardware.available_bytes)


def stack_bar(stack: StackPlan) -> MemoryBar:
    """The same, a part for each model with all that its server takes."""
    parts = [
        MemoryPart(f"{member.files.name}, {describe_cache(plan.cache)}", plan.needed_bytes)
        for member, plan in zip(stack.members, stack.plans, strict=True)
    ]
    return _bar(parts, stack.hardware.available_bytes)


def _bar(memory: Sequence[MemoryPart], available: int) -> MemoryBar:
    whole = max(sum(part.bytes or 0 for part in memory), available)
    parts, start = [], 0
    for number, part in enumerate(memory, start=1):
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
