"""A llama-server with one model: the only kind that reports exactly how many slots it has."""

from typing import Any

from apps.llm import errors
from apps.llm.client import Client
from apps.llm.slot_files import SlotFiles
from apps.servers.facts.command_line import AUTO_SLOTS
from apps.servers.facts.server_facts import ModelFacts, ServerFacts
from apps.servers.kinds import props as read_props
from apps.servers.kinds.listing import number
from apps.servers.models import Kind, State

SOURCE = "the server's /props"

KEY_ADVICE = (
    "It takes requests without a key, also from any web page open in a browser that reaches it. "
    "Start it with --api-key."
)


async def probe(
    client: Client, models: list[ModelFacts], props: dict[str, Any], known: ServerFacts
) -> ServerFacts:
    facts = ServerFacts(State.READY, Kind.LLAMA_SERVER, models)
    facts.sleeping = props.get("is_sleeping") is True
    facts.shows_slots = props.get("endpoint_slots") is not False
    facts.shows_metrics = props.get("endpoint_metrics") is True
    facts.build = str(props.get("build_info") or "")
    facts.process = str(props.get("media_marker") or "")[:100]  # drawn at each start
    facts.learn(
        SOURCE, slots=number(props.get("total_slots")), context=read_props.context_of(props)
    )
    if facts.slots != AUTO_SLOTS:
        # Only a given -np makes another number of slots, and with it the cache is split.
        facts.learn("assumed from the slot count", unified=False)
    for model in models:
        # The context in /v1/models is the whole cache, not a slot's share.
        if facts.context is not None:
            model.context = None
        read_props.learn(model, props, SOURCE)
        model.state = "sleeping" if facts.sleeping else "loaded"
        model.actions = ["warm"]
        await _learn_embeddings(client, model, facts, known)
        await _learn_slot_files(client, model, facts, known)
    return facts


async def _learn_slot_files(
    client: Client, model: ModelFacts, facts: ServerFacts, known: ServerFacts
) -> None:
    """Find out if it saves slots, once for each start of the server as far as that is told."""
    if facts.shows_slots is False:
        return  # what is in a slot cannot be known
    earlier = next((m for m in known.models if m.id == model.id), ModelFacts(model.id))
    is_same = not known.error and (known.process, known.slots) == (facts.process, facts.slots)
    if is_same and earlier.cache_key == model.cache_key and earlier.slot_files is not None:
        model.learn(earlier.sources["slot_files"], slot_files=earlier.slot_files)
    elif not facts.sleeping:
        supported = await SlotFiles(client, model.id).is_supported()
        model.learn("the server's answer", slot_files=supported)


async def _learn_embeddings(
    client: Client, model: ModelFacts, facts: ServerFacts, known: ServerFacts
) -> None:
    """Find out if it embeds, which it does not report: it refuses an empty list in two ways.

    The refusal uses no slot; but all requests except a few wake a sleeping server.
    """
    earlier = next((m for m in known.models if m.id == model.id), ModelFacts(model.id))
    is_same = earlier.weights == model.weights and known.build == facts.build
    if is_same and earlier.embeddings is not None:
        model.learn(earlier.sources["embeddings"], embeddings=earlier.embeddings)
    elif not facts.sleeping:
        try:
            await client.post("/v1/embeddings", {"model": model.id, "input": []})
        except errors.NotSupported:
            model.learn("the server's answer", embeddings=False)
        except errors.BadRequest:
            model.learn("the server's answer", embeddings=True)
        except errors.LLMError:
            pass
