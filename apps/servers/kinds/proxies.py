"""Olla, LiteLLM and all other OpenAI-compatible proxies: they hide slots, people state them."""

from typing import Any

from apps.llm import errors
from apps.llm.client import Client
from apps.servers.facts.server_facts import ModelFacts, ServerFacts
from apps.servers.kinds.listing import number
from apps.servers.models import Kind, State

MODEL_INFO = "LiteLLM's /v1/model/info"

OLLA_ADVICE = (
    "Olla takes 100 requests a minute from one address (50 at once) and waits 30 seconds for a "
    "first byte, unless its configuration says otherwise: raise per_ip_requests_per_minute and "
    "response_header_timeout for jobs."
)
STICKY_ADVICE = (
    "With several servers behind it, turn on its sticky sessions, which keep each chat on the "
    "server that has cached its prompt. Olla 0.0.26 knows them under /olla/proxy/v1 alone."
)
LITELLM_ADVICE = (
    "LiteLLM hides which server answers, its slots and the speed of the model. Add the servers "
    "behind it here directly to have their slots filled exactly."
)
LITELLM_STOP_ADVICE = (
    "Start LiteLLM with DISABLE_AIOHTTP_TRANSPORT=True. Without it, an answer that you stop may "
    "hold its slot until it would have ended."
)


async def probe(client: Client, models: list[ModelFacts]) -> ServerFacts:
    kind = await _kind(client)
    facts = ServerFacts(State.READY, kind, models)
    for model in models:
        model.actions = ["warm"]
    if kind == Kind.OLLA:
        facts.advice += [OLLA_ADVICE, STICKY_ADVICE]
    if kind == Kind.LITELLM:
        facts.advice += [LITELLM_ADVICE, LITELLM_STOP_ADVICE]
        await _learn_model_info(client, models)
    return facts


def is_olla(base_url: str) -> bool:
    return "/olla/" in base_url


async def olla_address(client: Client) -> str | None:
    """The address of Olla's balancing route, if an Olla's address was given without its path.

    Not that of /olla/openai: it knows no sticky sessions.
    """
    try:
        health = await client.get("/internal/health")
        listing = await client.get("/olla/proxy/v1/models")
    except errors.LLMError:
        return None
    if isinstance(health, dict) and isinstance(listing, dict) and "data" in listing:
        return f"{client.endpoint.root}/olla/proxy/v1"
    return None


async def _kind(client: Client) -> Kind:
    if is_olla(client.endpoint.base_url):
        return Kind.OLLA
    try:
        # Not /health, which sends a request to every model behind it.
        alive = await client.get("/health/liveliness")
    except errors.LLMError:
        return Kind.OPENAI
    return Kind.LITELLM if "alive" in str(alive).lower() else Kind.OPENAI


async def _learn_model_info(client: Client, models: list[ModelFacts]) -> None:
    try:
        listing = await client.get("/v1/model/info")
    except errors.LLMError:
        return
    data: Any = listing.get("data") if isinstance(listing, dict) else None
    by_name: dict[str, dict[str, Any]] = {}
    for item in data or []:
        if isinstance(item, dict) and isinstance(item.get("model_info"), dict):
            by_name.setdefault(str(item.get("model_name")), item["model_info"])
    for model in models:
        info = by_name.get(model.id, {})
        mode = info.get("mode")
        vision = info.get("supports_vision")
        model.learn(
            MODEL_INFO,
            context=number(info.get("max_input_tokens")),
            embeddings=mode == "embedding" if isinstance(mode, str) else None,
            vision=vision if isinstance(vision, bool) else None,
        )
