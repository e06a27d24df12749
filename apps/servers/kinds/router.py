"""llama-server's router mode: a process per model, of which a few fit at once."""

from typing import Any
from urllib.parse import quote

from apps.llm import errors
from apps.llm.client import Client
from apps.servers.facts.command_line import parse, parse_preset
from apps.servers.facts.server_facts import IN_MEMORY, ModelFacts, ServerFacts
from apps.servers.kinds import props as read_props
from apps.servers.kinds.listing import SOURCE as LISTING
from apps.servers.kinds.listing import number
from apps.servers.models import Kind, State

ARGUMENTS = "the router's arguments"
PRESET = "the router's preset"
MODEL_PROPS = "the model's /props"
ROUTER_PROPS = "the router's /props"


async def probe(
    client: Client,
    models: list[ModelFacts],
    items: list[dict[str, Any]],
    props: dict[str, Any],
    known: ServerFacts,
) -> ServerFacts:
    facts = ServerFacts(State.READY, Kind.ROUTER, models, build=str(props.get("build_info") or ""))
    facts.shows_slots = True
    facts.learn(ROUTER_PROPS, models_at_once=number(props.get("max_instances")))
    earlier = {model.id: model for model in known.models}
    for model, item in zip(models, items, strict=True):
        await _learn(client, model, item, earlier.get(model.id, ModelFacts(model.id)))
    return facts


async def _learn(
    client: Client, model: ModelFacts, item: dict[str, Any], earlier: ModelFacts
) -> None:
    status = item.get("status") or {}
    model.state = _state(status)
    if model.state == "failed":
        code = status.get("exit_code")
        model.error = f"The model process ended with exit code {code}." if code is not None else ""
    model.actions = actions(model.state, can_remove=item.get("can_remove") is True)
    # The listing's context is the whole cache of the process, not a slot's share of it.
    listed, model.context = model.context, None
    arguments = [word for word in status.get("args") or [] if isinstance(word, str)]
    if command := parse(arguments):
        model.learn(
            ARGUMENTS,
            slots=command.slots,
            context=command.context,
            unified=command.unified,
            pool=command.pool,
            embeddings=command.embeddings,
            slot_files=command.slot_files,
        )
    model.learn(PRESET, slots=parse_preset(str(status.get("preset") or "")))
    fingerprint = command.fingerprint if command else "?"
    if model.state == "loaded" and earlier.asked != fingerprint:
        if props := await props_of(client, model.id):
            _correct(model, props)
            read_props.learn(model, props, MODEL_PROPS)
            model.asked = fingerprint
    else:
        model.asked = earlier.asked if model.is_loaded else ""
    model.remember(earlier)
    if model.unified is not False:
        model.learn(LISTING, context=listed)


def _correct(model: ModelFacts, props: dict[str, Any]) -> None:
    """Prefer the process's own report to its arguments, which its environment may override."""
    reported = ModelFacts(model.id)
    read_props.learn(reported, props, MODEL_PROPS)
    for name in ("slots", "context"):
        value = getattr(reported, name)
        if value is not None and value != getattr(model, name):
            setattr(model, name, value)
            model.sources[name] = MODEL_PROPS
            if name == "slots":
                model.unified = None
                model.sources.pop("unified", None)


async def props_of(client: Client, model: str) -> dict[str, Any] | None:
    """A loaded model's /props. A model that is not loaded stays so: the answer is an error."""
    try:
        props = await client.get(f"/props?model={quote(model, safe='')}&autoload=false")
    except errors.LLMError:
        return None
    return props if isinstance(props, dict) else None


def slots_path(model: str) -> str:
    return f"/slots?model={quote(model, safe='')}&autoload=false"


def actions(state: str, *, can_remove: bool = False) -> list[str]:
    """The actions for a model in this state, where the server loads and unloads.

    Args:
        can_remove: the server downloaded it, and can delete its files.
    """
    if state in IN_MEMORY:
        return ["unload", "warm"]
    if state == "loading":
        return ["unload"]
    if state not in {"unloaded", "failed"}:
        return []
    return ["load", "delete"] if can_remove else ["load"]


def _state(status: dict[str, Any]) -> str:
    value = status.get("value")
    if status.get("failed"):
        return "failed"
    if value == "downloaded":
        return "unloaded"
    return value if isinstance(value, str) else "unknown"
