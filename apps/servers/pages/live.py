"""What servers do now, for those who look at the page: asked seldom, however many look."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User

from apps.llm import permits
from apps.runtime.async_db import in_db
from apps.runtime.per_loop import PerLoop
from apps.runtime.redis import async_redis
from apps.servers import services
from apps.servers.models import Server, State
from apps.servers.pages.cards import Card, card
from apps.servers.slots import slot_terms

# Polling /slots faster keeps requests alive at the server whose client is gone.
ASK_EVERY_MS = 2_000
REMEMBER_SECONDS = 10
# Cards that are put together at once, whoever looks: each needs a few connections to Redis, and a
# process has a hundred for everything.
CARDS_AT_ONCE = 8
MODELS_AT_ONCE = 4


async def _none(_: asyncio.Semaphore) -> None:
    """There is nothing to close."""


_few_cards = PerLoop(lambda: asyncio.Semaphore(CARDS_AT_ONCE), _none)


async def cards(servers: Sequence[Server], *, viewer: User, ask: bool = True) -> list[Card]:
    """The servers as they are now.

    Args:
        viewer: who looks.
        ask: False shows what is known, without a request to any server.
    """
    if ask:
        servers = await asyncio.gather(*map(services.look_at, servers))
    health = await services.ahealth(servers)
    return await asyncio.gather(
        *(_card(server, health[server.pk], viewer=viewer, ask=ask) for server in servers)
    )


async def _card(server: Server, health: services.Health, *, viewer: User, ask: bool) -> Card:
    # A router and llama-swap have slots per model; the others one row for all.
    scopes = server.loaded_models if server.swaps else [""]
    may_ask = ask and health.state == State.READY and not server.facts.get("sleeping")
    few_models = asyncio.Semaphore(MODELS_AT_ONCE)

    async def of_scope(scope: str) -> tuple[permits.Occupancy, list[dict[str, Any]]]:
        async with few_models:
            return await permits.read_occupancy(slot_terms(server, scope)), await _slots(
                server, scope, ask=may_ask
            )

    async with _few_cards.get():
        found, buckets, activities = await asyncio.gather(
            asyncio.gather(*map(of_scope, scopes)),
            permits.usage_history(server.pk),
            in_db(services.activities, server),
        )
    occupancies, said = [one for one, _ in found], [one for _, one in found]
    return card(
        server,
        health=health,
        occupancies=dict(zip(scopes, occupancies, strict=True)),
        slots=dict(zip(scopes, said, strict=True)),
        buckets=buckets,
        activities=activities,
        viewer=viewer,
    )


async def _slots(server: Server, scope: str, *, ask: bool) -> list[dict[str, Any]]:
    """What the server says of its slots, at most two seconds old: whoever asks in between is told
    the same."""
    redis, name = async_redis(), f"slots-shown:{server.pk}:{scope}"
    if ask and await redis.set(f"{name}:asked", 1, nx=True, px=ASK_EVERY_MS):
        shown = await services.slots_of(server, scope)
        await redis.set(name, json.dumps(shown), ex=REMEMBER_SECONDS)
        return shown
    known = await redis.get(name)
    return json.loads(known) if known else []
