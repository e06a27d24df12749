"""Plans several models that stay in memory together, such as chat beside embeddings (pure)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from apps.tuning.errors import PlanError
from apps.tuning.planner import outputs
from apps.tuning.planner.configurations import planned_server
from apps.tuning.planner.flag_warnings import warnings_for
from apps.tuning.planner.flags import Files
from apps.tuning.planner.hardware import Hardware
from apps.tuning.planner.model.model_shape import ModelShape
from apps.tuning.planner.outputs import PORT, PlannedServer
from apps.tuning.planner.plan import Plan, PlanRequest, make_plan
from apps.tuning.planner.uses import Use

MAX_MEMBERS = 16
STACK_FORMATS = ("command", "llama-swap", "router", "litellm", "olla")


@dataclass(frozen=True, slots=True)
class Member:
    shape: ModelShape
    use: Use
    files: Files


@dataclass(frozen=True, slots=True)
class StackPlan:
    hardware: Hardware
    members: tuple[Member, ...]
    plans: tuple[Plan, ...]
    """One a member; each counts its own server alone."""

    @property
    def needed_bytes(self) -> int:
        return sum(plan.needed_bytes for plan in self.plans)

    @property
    def fits(self) -> bool:
        return self.needed_bytes <= self.hardware.available_bytes

    @property
    def has_wanted_contexts(self) -> bool:
        """True if no context had to shrink below what the use asks for."""
        return all(
            plan.slot_context
            >= min(plan.request.needs.context, plan.request.shape.context or 2**24)
            for plan in self.plans
        )


def plan_stack(members: Sequence[Member], hardware: Hardware) -> StackPlan:
    """Give every member its memory, the last ones first: the first takes what they leave.

    Raises:
        PlanError: there are none, too many, or two of the same name.
    """
    if not 1 <= len(members) <= MAX_MEMBERS:
        raise PlanError(f"A stack has 1 to {MAX_MEMBERS} models.")
    names = [member.files.name for member in members]
    if len(set(names)) < len(names):
        raise PlanError("Two models have the same file name: requests could not tell them apart.")
    plans: list[Plan] = []
    for index in reversed(range(len(members))):
        member = members[index]
        before = sum(other.shape.weight_bytes or 0 for other in members[:index])
        taken = before + sum(plan.needed_bytes for plan in plans)
        plans.insert(0, _plan_member(member, hardware, taken))
    return StackPlan(hardware, tuple(members), tuple(plans))


def _plan_member(member: Member, hardware: Hardware, taken: int) -> Plan:
    """The plan of a member where so many bytes are taken by others."""
    request = PlanRequest(member.shape, hardware, member.use)
    with_others = replace(request, extra=replace(request.extra, others=taken))
    plan = make_plan(with_others)
    parts = tuple(part for part in plan.parts if part.name != "Other models")
    return replace(plan, request=request, parts=parts)


def stack_servers(stack: StackPlan) -> list[PlannedServer]:
    """Each with its use as an alias, where it is the only one of that use."""
    uses = [member.use for member in stack.members]
    return [
        replace(
            planned_server(plan, member.files),
            aliases=(member.use.value,) if uses.count(member.use) == 1 else (),
        )
        for member, plan in zip(stack.members, stack.plans, strict=True)
    ]


def stack_warnings(stack: StackPlan) -> list[str]:
    """Once for all where it is true of each, else with the model's name."""
    found: dict[str, list[str]] = {}
    for server, member, plan in zip(stack_servers(stack), stack.members, stack.plans, strict=True):
        said = warnings_for(server.flags, plan.cache, member.shape, member.use)
        for warning in said:
            found.setdefault(warning, []).append(server.name)
    texts = [
        text if len(names) == len(stack.members) else f"{', '.join(names)}: {text}"
        for text, names in found.items()
    ]
    if not stack.fits:
        texts.append("Not all models fit at once: leave one out, or let llama-swap swap them.")
    return texts


def write_stack(format_name: str, stack: StackPlan) -> str:
    """Return one of STACK_FORMATS: the proxies expect llama-swap or the router on one port.

    Raises:
        PlanError: there is no such format for several models, or a path cannot stand in it.
    """
    servers = stack_servers(stack)
    match format_name:
        case "command":
            return "\n\n".join(_commands(servers))
        case "llama-swap":
            return outputs.llama_swap(servers, all_fit=stack.fits)
        case "router":
            return outputs.router_presets(servers)
        case "litellm":
            return outputs.litellm(servers)
        case "olla":
            return outputs.olla(servers)
    raise PlanError(f"Several models are written as one of {', '.join(STACK_FORMATS)}.")


def _commands(servers: Iterable[PlannedServer]) -> list[str]:
    return [
        outputs.command(replace(server, port=PORT + index)) for index, server in enumerate(servers)
    ]
