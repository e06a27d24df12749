"""Reads the slots of a server, as llama-server reports them."""

from apps.llm.client import Client, client_for
from apps.servers.facts.slot_status import SlotStatus
from apps.servers.kinds import llama_swap, router
from apps.servers.models import Kind, Server, State
from apps.servers.observations import record_held_tokens
from apps.servers.probing import discovery


async def read_slots(server: Server, model: str = "") -> list[SlotStatus]:
    """Each slot as llama-server reports it now; empty where it shows none.

    Never asks what would wake a sleeping server, load a model or keep one in memory: a server
    that sleeps shows nothing, and of a router or llama-swap only a model that is loaded and not
    to be unloaded after some quiet.
    """
    if server.state != State.READY or not server.facts.shows_slots:
        return []
    client = client_for(server.endpoint)
    found = []
    for name, path in await _routes(server, client, model):
        entries = await discovery.fetch_slots(client, path) or []
        found += [SlotStatus.parse(entry, index, name) for index, entry in enumerate(entries)]
    if found and not server.swaps:
        await record_held_tokens(server, sum(slot.held or 0 for slot in found))
    return found


async def _routes(server: Server, client: Client, model: str) -> list[tuple[str, str]]:
    """Model and path of each process whose slots may be asked for."""
    if not server.swaps:
        if server.facts.sleeping or await discovery.is_sleeping(client):
            return []
        return [(next(iter(server.model_ids), ""), "/slots")]
    wanted = server.model_id(model)
    loaded = [
        m.id
        for m in server.model_facts
        if m.state == "loaded" and wanted in {"", m.id} and not m.ttl
    ]
    if server.kind == Kind.ROUTER:
        return [(name, router.slots_path(name)) for name in loaded]
    return [(name, llama_swap.upstream(name, "/slots")) for name in loaded]
