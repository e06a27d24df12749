"""What a server is, found out by asking it and never by loading, waking or keeping a model.

The order of the questions follows what each kind answers: llama-swap names itself in `owned_by`,
llama-server's router says `role: router` in /props and a single llama-server `total_slots`; Olla
shows in the address, LiteLLM in a health route of its own. What each kind is asked beyond that is
in `apps.servers.kinds`.
"""

from typing import Any

from apps.llm import errors
from apps.llm.client import Client
from apps.servers.facts.server_facts import Facts, ModelFacts
from apps.servers.kinds import llama_server, llama_swap, proxies, router
from apps.servers.kinds.listing import items_of, model_of
from apps.servers.models import Kind, State

NOT_A_MODEL_SERVER = (
    "Something answers at this address, but not as a model server does. Is a part of the address "
    "missing?"
)


async def look(client: Client, known: dict[str, Any] | None = None) -> Facts:
    """Asks a server what it is. Never raises for a server that fails: that is a fact too.

    Args:
        known: what an earlier look showed, so that what cannot change is not asked again.
    """
    try:
        listing = await client.get("/v1/models")
    except errors.Unauthorized as error:
        return Facts(State.UNAUTHORIZED, error=str(error))
    except errors.Loading as error:
        return Facts(State.LOADING, Kind.LLAMA_SERVER, error=str(error))
    except errors.UnknownModel:
        return Facts(State.UNREACHABLE, error=await _wrong_address(client))
    except errors.LLMError as error:
        return Facts(State.UNREACHABLE, error=str(error))
    if not isinstance(listing, dict) or not isinstance(listing.get("data"), list):
        return Facts(State.UNREACHABLE, error=NOT_A_MODEL_SERVER)
    try:
        facts = await _facts(client, items_of(listing), known or {})
    except errors.Unauthorized as error:  # it lists its models to anybody
        return Facts(State.UNAUTHORIZED, error=str(error))
    except errors.Loading as error:
        return Facts(State.LOADING, Kind.LLAMA_SERVER, error=str(error))
    facts.keyless = not client.endpoint.api_key
    if facts.keyless and facts.kind in {Kind.LLAMA_SERVER, Kind.ROUTER}:
        facts.advice.append(llama_server.KEY_ADVICE)
    return facts


async def _facts(client: Client, items: list[dict[str, Any]], known: dict[str, Any]) -> Facts:
    models = [model_of(item) for item in items]
    owners = {item.get("owned_by") for item in items}
    if "llama-swap" in owners:
        return await llama_swap.look(client, models, items, known)
    if proxies.is_olla(client.endpoint.base_url):
        return await proxies.look(client, models)
    props = await _props(client, is_llama_server="llamacpp" in owners)
    if props.get("src") == "llama-swap":  # one without a model of its own
        return await llama_swap.look(client, models, items, known)
    if props.get("role") == "router":
        return await router.look(client, models, items, props, known)
    if isinstance(props.get("total_slots"), int):
        return await llama_server.look(client, models or [ModelFacts("default")], props, known)
    return await proxies.look(client, models)


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


async def is_asleep(client: Client) -> bool:
    """Whether a llama-server has unloaded its model for want of work. Asking does not wake it."""
    try:
        props = await client.get("/props")
    except errors.LLMError:
        return True
    return isinstance(props, dict) and props.get("is_sleeping") is True


async def slot_states(client: Client, path: str = "/slots") -> list[dict[str, Any]] | None:
    """llama-server's own view of its slots; None where it shows none.

    Do not ask more often than every 2 s (polling keeps requests alive whose client is gone), nor
    a server that sleeps (it would wake).
    """
    try:
        slots = await client.get(path)
    except errors.LLMError:
        return None
    return slots if isinstance(slots, list) else None
