"""A plan in each of the forms that people copy (pure)."""

from apps.tuning.planner import outputs
from apps.tuning.planner.flags import Files, flags_of
from apps.tuning.planner.outputs import PlannedServer
from apps.tuning.planner.plan import Plan
from apps.tuning.planner.uses import Use

# Title by the name that `manage.py plan --format` takes.
FORMATS = {
    "command": "Command",
    "compose": "Docker Compose service",
    "llama-swap": "llama-swap config.yaml",
    "router": "Router presets (INI)",
    "litellm": "LiteLLM config.yaml",
    "olla": "Olla config.yaml",
}


def planned_server(plan: Plan, files: Files) -> PlannedServer:
    return PlannedServer(
        name=files.name,
        flags=flags_of(plan, files),
        slots=plan.cache.slots,
        slot_context=plan.slot_context,
        embeddings=plan.request.use is Use.EMBEDDINGS,
    )


def write_configuration(format_name: str, plan: Plan, files: Files) -> str:
    """Return the text of one of FORMATS.

    Raises:
        PlanError: a path cannot stand in it.
    """
    server, hardware = planned_server(plan, files), plan.request.hardware
    match format_name:
        case "compose":
            return outputs.compose(server, hardware=hardware.name, kind=hardware.kind)
        case "llama-swap":
            return outputs.llama_swap([server])
        case "router":
            return outputs.router_presets([server])
        case "litellm":
            return outputs.litellm([server])
        case "olla":
            return outputs.olla([server])
        case _:
            return outputs.command(server)
