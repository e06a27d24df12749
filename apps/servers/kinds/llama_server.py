"""A llama-server with one model: the only kind that says exactly how many slots it has."""

from typing import Any

from apps.llm import errors
from apps.llm.client import Client
from apps.servers.facts.command_line import AUTO_SLOTS
from apps.servers.facts.server_facts import Facts, ModelFacts
from apps.servers.kinds import props as read_props
from apps.servers.kinds.listing import number
from apps.servers.models import Kind, State

SOURCE = "the server's /props"

KEY_ADVICE = (
    "It takes requests without a key, also from any web page open in a browser that reaches it. "
    "Start it with --api-key."
)


async def look(
    client: Client, models: list[ModelFacts], props: dict[str, Any], known: dict[str, Any]
) -> Facts:
    facts = Facts(State.READY, Kind.LLAMA_SERVER, models)
    facts.sleeping = props.get("is_sleeping") is True
    facts.shows_slots = props.get("endpoint_slots") is not False
    facts.shows_metrics = props.get("endpoint_metrics") is True
    facts.build = str(props.get("build_info") or "")
    facts.learn(
        SOURCE, slots=number(props.get("total_slots")), context=read_props.context_of(props)
    )
    if facts.slots != AUTO_SLOTS:
        # Only a given -np makes another number of slots, and with it the cache is split.
        facts.learn("the slot count", unified=False)
    for model in models:
        # What /v1/models says of the context is the whole cache, not a slot's share.
        if facts.context is not None:
            model.context = None
        read_props.learn(model, props, SOURCE)
        model.state = "sleeping" if facts.sleeping else "loaded"
        model.actions = ["warm"]
        await _learn_embeddings(client, model, facts, known)
    return facts


async def _learn_embeddings(
    client: Client, model: ModelFacts, facts: Facts, known: dict[str, Any]
) -> None:
    """Whether it embeds, of which it says nothing: an empty list is refused in two different ways.

    The refusal uses no slot; but any request but a few wakes a sleeping server.
    """
    earlier: dict[str, Any] = next(
        (m for m in known.get("models", []) if m.get("id") == model.id), {}
    )
    same = earlier.get("weights") == model.weights and known.get("build") == facts.build
    if same and earlier.get("embeddings") is not None:
        model.learn(earlier["sources"]["embeddings"], embeddings=earlier["embeddings"])
    elif not facts.sleeping:
        try:
            await client.post("/v1/embeddings", {"model": model.id, "input": []})
        except errors.NotSupported:
            model.learn("the server's answer", embeddings=False)
        except errors.BadRequest:
            model.learn("the server's answer", embeddings=True)
        except errors.LLMError:
            pass
