"""Plans that several tests look at."""

from typing import Any

from apps.tuning.planner.hardware import Hardware, find_hardware
from apps.tuning.planner.model_shape import ModelShape
from apps.tuning.planner.plan import Plan, PlanRequest, make_plan
from apps.tuning.planner.uses import Use


def plan_of(
    shape: ModelShape, use: Use = Use.CHAT, *, hardware: Hardware | None = None, **given: Any
) -> Plan:
    return make_plan(
        PlanRequest(shape, hardware or find_hardware("CPU, DDR5, two channels"), use, **given)
    )
