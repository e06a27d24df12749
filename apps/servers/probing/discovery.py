"""Discovers what a server is, without ever loading, waking or keeping a model.

The order of the questions follows what each kind answers: llama-swap names itself in `owned_by`,
llama-server's router says `role: router` in /props and a single llama-server `total_slots`; Olla
shows in the address, LiteLLM in a health route of its own. Further questions for each kind are in
`apps.servers.kinds`.
"""

from typing import Any

from apps.llm import errors
from apps.llm.client import Client
from apps.servers.facts.server_facts import ModelFacts, ServerFacts
from apps.servers.kinds import llama_server, llama_swap, proxies, router
from apps.servers.kinds.listing import items_of, model_of
from apps.servers.models import Kind, State

NOT_A_MODEL_SERVER = (
    "Something answers at this address, but not as a model server does. Is a part of the address "
    "missing?"
)


async def probe(client: Client, known: ServerFacts | None = None) -> ServerFacts:
    """Ask a server what it is. Never raises for a server that fails: that is a fact too.

    Args:
        known: the facts of an earlier probe, so that what cannot change is not asked again.
    """
    try:
        listing = await client.get("/v1/models")
    except errors.Unauthorized as error:
        return ServerFacts(State.UNAUTHORIZED, error=str(error))
    except errors.Loading as error:
        return ServerFacts(State.LOADING, Kind.LLAMA_SERVER, error=str(error))
    except errors.UnknownModel:
        return ServerFacts(State.UNREACHABLE, error=await _wrong_address(client))
    except errors.LLMError as error:
        return ServerFacts(State.UNREACHABLE, error=str(error))
    if not isinstance(listing, dict) or not isinstance(listing.get("data"), list):
        return ServerFacts(State.UNREACHABLE, error=NOT_A_MODEL_SERVER)
    try:
        facts = await _probe_kind(client, items_of(listing), known or ServerFacts())
    except errors.Unauthorized as error:  # it lists its models to anybody
        return ServerFacts(State.UNAUTHORIZED, error=str(error))
    except errors.Loading as error:
        return ServerFacts(State.LOADING, Kind.LLAMA_SERVER, error=str(error))
    facts.shows_slots = bool(facts.shows_slots)
    facts.shows_metrics = bool(facts.shows_metrics)
    facts.keyless = not client.endpoint.api_key
    if facts.keyless and facts.kind in {Kind.LLAMA_SERVER, Kind.ROUTER}:
        facts.advice.append(llama_server.KEY_ADVICE)
    return facts


async def _probe_kind(
    client: Client, items: list[dict[str, Any]], known: ServerFacts
) -> ServerFacts:
    models = [model_of(item) for item in items]
    owners = {item.get("owned_by") for item in items}
    if "llama-swap" in owners:
        return await llama_swap.probe(client, models, items, known)
    if proxies.is_olla(client.endpoint.base_url):
        return await proxies.probe(client, models)
    props = await _props(client, is_llama_server="llamacpp" in owners)
    if props.get("src") == "llama-swap":  # one without a model of its own
        return await llama_swap.probe(client, models, items, known)
    if props.get("role") == "router":
        return await router.probe(client, models, items, props, known)
    if isinstance(props.get("total_slots"), int):
        return await llama_server.probe(client, models or [ModelFacts("default")], props, known)
    return await proxies.probe(client, models)


async def _props(client: Client, *, is_llama_server: bool) -> dict[str, Any]:
    try:
        props = await client.get("/props")
    except (errors.Unauthorized, errors.Loading) as error:
        if is_llama_server:
            raise
        return {"error": str(error)}
    except errors.LLMError as error:
        return {"src": "llama-swap"} if "llama-swap" in str(error) else {}
    return props if isinstance(props, dict) else {}


async def _wrong_address(client: Client) -> str:
    if address := await proxies.olla_address(client):
        return f"This is Olla. Use its full address: {address}"
    return NOT_A_MODEL_SERVER


async def is_sleeping(client: Client) -> bool:
    """True if a llama-server has unloaded its model while idle. Asking does not wake it."""
    try:
        props = await client.get("/props")
    except errors.LLMError:
        return True
    return isinstance(props, dict) and props.get("is_sleeping") is True


async def fetch_slots(client: Client, path: str = "/slots") -> list[dict[str, Any]] | None:
    """The decoded answer of llama-server's /slots; None where it shows none.

    Do not ask more often than every 2 s (polling keeps requests alive whose client is gone), nor
    a server that sleeps (it would wake).
    """
    try:
        slots = await client.get(path)
    except errors.LLMError:
        return None
    return slots if isinstance(slots, list) else None
