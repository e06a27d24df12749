"""llama-swap: starts and stops a process per model, in front of any server."""

import re
from typing import Any
from urllib.parse import quote

from apps.llm import errors
from apps.llm.client import Client
from apps.servers.facts.command_line import CommandLine, parse
from apps.servers.facts.server_facts import ModelFacts, ServerFacts
from apps.servers.kinds import props as read_props
from apps.servers.kinds.listing import number
from apps.servers.kinds.router import MODEL_PROPS, actions
from apps.servers.models import Kind, State

METADATA = "llama-swap's metadata"
COMMAND = "llama-swap's command line"

# Usual names in `metadata:`, which people fill as they like.
SLOT_FIELDS = ("slots", "parallel", "n_parallel", "np")
CONTEXT_FIELDS = ("n_ctx", "context", "context_length", "ctx")

STATES = {
    "ready": "loaded",
    "starting": "loading",
    "stopping": "unloading",
    "stopped": "unloaded",
    "shutdown": "unloaded",
}
# The default of concurrencyLimit in its configuration. No route reports it.
CONCURRENCY_LIMIT = (
    10,
    "llama-swap allows 10 requests per model at a time, including waiting ones.",
)


async def probe(
    client: Client, models: list[ModelFacts], items: list[dict[str, Any]], known: ServerFacts
) -> ServerFacts:
    facts = ServerFacts(State.READY, Kind.LLAMA_SWAP, models, shows_slots=True)
    facts.concurrency_limit = CONCURRENCY_LIMIT
    running = await processes(client)
    earlier = {model.id: model for model in known.models}
    for model, item in zip(models, items, strict=True):
        process = running.get(model.id) if running is not None else None
        metadata = (item.get("meta") or {}).get("llamaswap") or {}
        _learn_metadata(model, metadata)
        if metadata.get("peerID"):  # another machine's: llama-swap only passes requests on
            model.actions = ["warm"]
            continue
        model.state = _state(process, running, item)
        model.actions = actions(model.state)
        await _learn_process(client, model, process, earlier.get(model.id, ModelFacts(model.id)))
    return facts


async def processes(client: Client) -> dict[str, dict[str, Any]] | None:
    """The running processes by model; None where llama-swap does not list them."""
    try:
        listing = await client.get("/running")
    except errors.LLMError:
        return None
    found = listing.get("running") if isinstance(listing, dict) else None
    return {p["model"]: p for p in found or [] if isinstance(p, dict) and "model" in p}


def upstream(model: str, path: str) -> str:
    """The address of a model's own route. Asking it starts the model: ask only one that runs."""
    return f"/upstream/{quote(model, safe='/')}{path}"


def unload_path(model: str) -> str:
    return f"/api/models/unload/{quote(model, safe='/')}"


def _learn_metadata(model: ModelFacts, metadata: dict[str, Any]) -> None:
    def first(names: tuple[str, ...]) -> int | None:
        values = (metadata.get(name) for name in names)
        digits = (
            int(v) if isinstance(v, str) and re.fullmatch(r"\d{1,9}", v) else v for v in values
        )
        return next(filter(None, map(number, digits)), None)

    embeddings = metadata.get("embeddings")
    model.learn(
        METADATA,
        slots=first(SLOT_FIELDS),
        context=first(CONTEXT_FIELDS),
        embeddings=embeddings if isinstance(embeddings, bool) else None,
    )


async def _learn_process(
    client: Client,
    model: ModelFacts,
    process: dict[str, Any] | None,
    earlier: ModelFacts,
) -> None:
    text = str((process or {}).get("cmd") or "")
    command = parse(text) if text else None
    if command is not None:
        _learn_command(model, command)
    model.ttl = number((process or {}).get("ttl"))
    fingerprint = command.fingerprint if command else "?"
    if model.state == "loaded" and earlier.asked != fingerprint:
        # Once per command: a request counts as use and would keep the model from being unloaded.
        try:
            props = await client.get(upstream(model.id, "/props"))
        except errors.LLMError:
            props = None
        if isinstance(props, dict):
            read_props.learn(model, props, MODEL_PROPS)
        model.asked = fingerprint
    elif model.state == "loaded":
        model.asked = fingerprint
    model.remember(earlier)


def _learn_command(model: ModelFacts, command: CommandLine) -> None:
    model.learn(
        COMMAND,
        slots=command.slots,
        context=command.context,
        unified=command.unified,
        pool=command.pool,
        embeddings=command.embeddings,
        slot_files=command.slot_files,
    )


def _state(
    process: dict[str, Any] | None,
    running: dict[str, dict[str, Any]] | None,
    item: dict[str, Any],
) -> str:
    if process is not None:
        return STATES.get(str(process.get("state")), "unknown")
    if running is not None:
        return "unloaded"
    value = (item.get("status") or {}).get("value")
    return value if isinstance(value, str) else "unknown"
