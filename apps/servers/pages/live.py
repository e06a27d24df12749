"""Reads what servers do now for the page, with few requests however many people watch."""

import asyncio
import json
from collections.abc import Sequence

from django.contrib.auth.models import User

from apps.llm import permits
from apps.runtime.async_db import in_db
from apps.runtime.per_loop import PerLoop
from apps.runtime.redis import async_redis
from apps.servers import services
from apps.servers.facts.slot_status import SlotStatus
from apps.servers.models import Server, State
from apps.servers.pages.cards import Card, CardFacts, SlotUse, build_card
from apps.servers.pages.findings import read_findings
from apps.servers.pages.slots.slot_file_rows import read_summaries
from apps.servers.slots.hold_slot import slot_terms

# Polling /slots faster keeps requests alive at the server whose client is gone.
ASK_EVERY_MS = 2_000
REMEMBER_SECONDS = 10
# Servers that are read at once, for all viewers: each needs a few connections to Redis, and a
# process has a hundred for everything.
SERVERS_AT_ONCE = 8
MODELS_AT_ONCE = 4


async def _none(_: asyncio.Semaphore) -> None:
    """There is nothing to close."""


_few_servers = PerLoop(lambda: asyncio.Semaphore(SERVERS_AT_ONCE), _none)


async def read_cards(servers: Sequence[Server], *, viewer: User, ask: bool = True) -> list[Card]:
    """The servers as they are now, in the order of the page.

    Args:
        viewer: the user.
        ask: False shows the known facts, without a request to any server.
    """
    if ask:
        servers = await asyncio.gather(*map(services.refresh_server, servers))
    health, activities, slot_files, findings = await asyncio.gather(
        services.aread_health(servers),
        in_db(services.model_activities),
        in_db(read_summaries, servers),
        in_db(read_findings, servers),
    )
    uses = await asyncio.gather(
        *(_slot_use(server, ask=ask and _is_awake(server, health[server.pk])) for server in servers)
    )
    cards = [
        build_card(
            server,
            CardFacts(
                health=health[server.pk],
                use=use,
                activities=activities.get(server.pk, {}),
                slot_files=slot_files.get(server.pk),
                findings=findings.get(server.pk, ()),
            ),
            viewer=viewer,
        )
        for server, use in zip(servers, uses, strict=True)
    ]
    return sorted(cards, key=_place)


def _is_awake(server: Server, health: services.Health) -> bool:
    return health.state == State.READY and not server.facts.sleeping


def _place(card: Card) -> tuple[bool, int, str]:
    """Offline servers last; before them by what they are the default for, then by name."""
    return card.state == State.UNREACHABLE, card.line.rank, card.server.name.lower()


async def _slot_use(server: Server, *, ask: bool) -> SlotUse:
    # A router and llama-swap have slots per model; the others one row for all.
    scopes = server.loaded_models if server.swaps else [""]
    few_models = asyncio.Semaphore(MODELS_AT_ONCE)

    async def of_scope(scope: str) -> tuple[permits.Occupancy, list[SlotStatus]]:
        async with few_models:
            occupancy = await permits.read_occupancy(slot_terms(server, scope))
            return occupancy, await _slots(server, scope, ask=ask)

    async with _few_servers.get():
        found, buckets, model_waits = await asyncio.gather(
            asyncio.gather(*map(of_scope, scopes)),
            permits.usage_history(server.pk),
            permits.read_model_waits(server.pk),
        )
    by_scope = dict(zip(scopes, found, strict=True))
    return SlotUse(
        occupancies={scope: occupancy for scope, (occupancy, _) in by_scope.items()},
        slots={scope: slots for scope, (_, slots) in by_scope.items()},
        buckets=buckets,
        model_waits=model_waits,
    )


async def _slots(server: Server, scope: str, *, ask: bool) -> list[SlotStatus]:
    """The server's report about its slots, at most two seconds old, shared by all viewers."""
    redis, name = async_redis(), f"slots-shown:{server.pk}:{scope}"
    if ask and await redis.set(f"{name}:asked", 1, nx=True, px=ASK_EVERY_MS):
        shown = await services.read_slots(server, scope)
        await redis.set(name, json.dumps([slot.to_json() for slot in shown]), ex=REMEMBER_SECONDS)
        return shown
    known = await redis.get(name)
    return [SlotStatus.from_json(slot) for slot in json.loads(known)] if known else []
