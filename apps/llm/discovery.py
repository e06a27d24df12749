"""What a server is, found out by asking it and never by loading a model.

The order of the questions follows what each kind answers: only llama-server has `/props` with
`total_slots`, its router says `role: router`, llama-swap names itself in its errors and in
`owned_by`, LiteLLM answers 404 in FastAPI's words.
"""

import re
import shlex
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any

from apps.llm import errors
from apps.llm.client import Client
from apps.llm.models import Kind, State

# What llama-server does when -np is not given.
AUTO_SLOTS = 4


@dataclass(frozen=True)
class ModelFacts:
    id: str
    state: str = "loaded"
    context: int | None = None
    """Tokens one slot holds."""
    context_trained: int | None = None
    embeddings: bool | None = None
    """None: nobody said. Asking costs a request, so it is found out when first used."""
    weights: list[int] = field(default_factory=list)
    """Parameters, bytes and width of the model, where the server says: they tell one model from
    another of the same name."""


@dataclass(frozen=True)
class Facts:
    """What one look at a server showed."""

    state: State
    kind: Kind = Kind.OPENAI
    models: list[ModelFacts] = field(default_factory=list)
    slots: int | None = None
    slots_source: str = ""
    context: int | None = None
    error: str = ""
    """Why it is not ready, as a sentence."""

    def as_dict(self) -> dict[str, Any]:
        """For the database, without what has a column of its own."""
        facts = asdict(self)
        del facts["state"], facts["kind"]
        return facts


async def look(client: Client) -> Facts:
    """Asks a server what it is. Never raises for a server that fails: that is a fact too."""
    try:
        listing = await client.get("/v1/models")
    except errors.Unauthorized as error:
        return Facts(State.UNAUTHORIZED, error=str(error))
    except errors.Loading as error:
        return Facts(State.LOADING, Kind.LLAMA_SERVER, error=str(error))
    except errors.LLMError as error:
        return Facts(State.UNREACHABLE, error=str(error))
    items = [item for item in _items(listing) if isinstance(item.get("id"), str)]
    models = [_model(item) for item in items]
    owners = {item.get("owned_by") for item in items}

    if "llama-swap" in owners:
        slots, source = await _llama_swap_slots(client, items)
        return Facts(State.READY, Kind.LLAMA_SWAP, models, slots, source)
    props = await _props(client)
    if props.get("role") == "router":
        slots, source = _slots_of_arguments(
            [item.get("status", {}).get("args") or [] for item in items]
        )
        return Facts(State.READY, Kind.ROUTER, models, slots, source)
    if isinstance(props.get("total_slots"), int):
        context = (props.get("default_generation_settings") or {}).get("n_ctx")
        return Facts(
            State.READY,
            Kind.LLAMA_SERVER,
            [replace(m, context=context or m.context) for m in models],
            props["total_slots"],
            "the server's /props",
            context,
        )
    return Facts(State.READY, _proxy_kind(props, client), models)


async def slot_states(client: Client) -> list[dict[str, Any]] | None:
    """llama-server's own view of its slots; None where it shows none.

    Do not ask more often than every 2 s: polling keeps requests alive whose client is gone.
    """
    try:
        slots = await client.get("/slots")
    except errors.LLMError:
        return None
    return slots if isinstance(slots, list) else None


def _items(listing: Any) -> list[dict[str, Any]]:
    data = listing.get("data") if isinstance(listing, dict) else None
    return [item for item in data or [] if isinstance(item, dict)]


def _model(item: dict[str, Any]) -> ModelFacts:
    meta = item.get("meta") or {}
    status = item.get("status") or {}
    arguments = status.get("args")
    return ModelFacts(
        id=item["id"],
        state=status.get("value") or "loaded",
        context=meta.get("n_ctx") or item.get("context_length"),
        context_trained=meta.get("n_ctx_train"),
        embeddings=None
        if not arguments
        else bool({"--embedding", "--embeddings"} & set(arguments)),
        weights=[
            meta[name] for name in ("n_params", "size", "n_embd") if isinstance(meta.get(name), int)
        ],
    )


async def _props(client: Client) -> dict[str, Any]:
    try:
        props = await client.get("/props")
    except errors.LLMError as error:
        return {"error": str(error)}
    return props if isinstance(props, dict) else {}


def _proxy_kind(props: dict[str, Any], client: Client) -> Kind:
    if "/olla/" in client.endpoint.base_url:
        return Kind.OLLA
    if "Not Found" in props.get("error", ""):
        return Kind.LITELLM
    return Kind.OPENAI


async def _llama_swap_slots(client: Client, items: list[dict[str, Any]]) -> tuple[int | None, str]:
    for item in items:
        stated = ((item.get("meta") or {}).get("llamaswap") or {}).get("slots")
        if isinstance(stated, int):
            return stated, "llama-swap's metadata"
    try:
        running = (await client.get("/running")).get("running", [])
    except (errors.LLMError, AttributeError):
        return None, ""
    slots, _ = _slots_of_arguments(
        [shlex.split(re.sub(r"\\\n", " ", process.get("cmd", ""))) for process in running]
    )
    return slots, "llama-swap's command line" if slots else ""


def _slots_of_arguments(command_lines: list[list[str]]) -> tuple[int | None, str]:
    """The smallest -np among the loaded models: safe for whichever of them answers."""
    found = [_parallel(arguments) for arguments in command_lines if arguments]
    return (min(found), "the router's arguments") if found else (None, "")


def _parallel(arguments: list[str]) -> int:
    for flag, value in pairwise(arguments):
        if flag in {"-np", "--parallel"} and value.isdecimal():
            return int(value)
    return AUTO_SLOTS
