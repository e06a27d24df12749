"""Plans that several tests look at."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from apps.tuning.planner.configurations import planned_server
from apps.tuning.planner.flags import Files
from apps.tuning.planner.hardware import Hardware, find_hardware
from apps.tuning.planner.model.gguf_header import read_header
from apps.tuning.planner.model.model_shape import ModelShape, read_shape
from apps.tuning.planner.outputs import PlannedServer
from apps.tuning.planner.plan import Plan, PlanRequest, make_plan
from apps.tuning.planner.uses import Use


def plan_of(
    shape: ModelShape, use: Use = Use.CHAT, *, hardware: Hardware | None = None, **given: Any
) -> Plan:
    return make_plan(
        PlanRequest(shape, hardware or find_hardware("CPU, DDR5, two channels"), use, **given)
    )


def server_of(plan: Plan, files: Files, *, port: int = 8080) -> PlannedServer:
    return replace(planned_server(plan, files), port=port)


def shape_of_file(model: Path) -> ModelShape:
    return read_shape(read_header(model.read_bytes()), file_bytes=model.stat().st_size)
