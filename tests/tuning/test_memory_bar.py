"""The bar of memory: parts side by side, in percent of what is larger, need or hardware."""

from dataclasses import replace

from apps.tuning.planner.hardware import GIB, find_hardware
from apps.tuning.planner.stack.presets import plan_preset
from apps.tuning.views.memory_bar import MemoryBar, memory_bar, stack_bar
from tests.tuning.planner.plans import plan_of
from tests.tuning.planner.test_memory import LLAMA

GPU = find_hardware("RTX 4090")


def percent(text: str) -> float:
    return float(text.removesuffix("%"))


def assert_side_by_side(bar: MemoryBar) -> float:
    """Each part begins where the one before ends; returns the end of the last."""
    end = 0.0
    for number, part in enumerate(bar.parts, start=1):
        assert part.number == number
        assert abs(percent(part.start) - end) < 0.02
        end = percent(part.start) + percent(part.width)
    return end


def test_a_plan_that_fits_ends_before_the_hardware_does() -> None:
    plan = plan_of(LLAMA, hardware=GPU)
    bar = memory_bar(plan)
    assert [part.name for part in bar.parts] == [part.name for part in plan.parts]
    used = 100 * plan.needed_bytes / GPU.available_bytes
    assert abs(assert_side_by_side(bar) - used) < 0.1
    assert bar.limit == "100.00%"


def test_a_plan_that_does_not_fit_passes_the_limit() -> None:
    bar = memory_bar(plan_of(replace(LLAMA, weight_bytes=48 * GIB), hardware=GPU))
    assert abs(assert_side_by_side(bar) - 100) < 0.1
    assert 40 < percent(bar.limit) < 50


def test_what_is_not_reported_has_no_width() -> None:
    weights = memory_bar(plan_of(replace(LLAMA, weight_bytes=None), hardware=GPU)).parts[0]
    assert (weights.size, weights.width) == ("not reported", "0.00%")


def test_a_stack_has_a_part_for_each_model() -> None:
    stack = plan_preset("16 GB")
    bar = stack_bar(stack)
    assert [part.name.split(",")[0] for part in bar.parts] == [
        member.files.name for member in stack.members
    ]
    assert abs(assert_side_by_side(bar) - 100 * stack.needed_bytes / (16 * GIB)) < 0.1
