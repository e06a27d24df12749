"""Reads what servers do now for the page, with few requests however many people watch."""

import asyncio
import json
from collections.abc import Mapping, Sequence

from django.contrib.auth.models import User

from apps.llm import permits
from apps.runtime.async_db import in_db
from apps.runtime.per_loop import PerLoop
from apps.runtime.redis import async_redis
from apps.servers import services
from apps.servers.facts.slot_status import SlotStatus
from apps.servers.models import Server, State
from apps.servers.pages.cards import Card, build_card
from apps.servers.pages.findings import read_findings
from apps.servers.pages.slots.slot_file_rows import SlotFileSummary, read_summaries
from apps.servers.slots.hold_slot import slot_terms

# Polling /slots faster keeps requests alive at the server whose client is gone.
ASK_EVERY_MS = 2_000
REMEMBER_SECONDS = 10
# Cards that are built at once, for all viewers: each needs a few connections to Redis, and a
# process has a hundred for everything.
CARDS_AT_ONCE = 8
MODELS_AT_ONCE = 4


async def _none(_: asyncio.Semaphore) -> None:
    """There is nothing to close."""


_few_cards = PerLoop(lambda: asyncio.Semaphore(CARDS_AT_ONCE), _none)


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
    cards = await asyncio.gather(
        *(
            _card(
                server,
                health[server.pk],
                activities.get(server.pk, {}),
                slot_files.get(server.pk),
                findings.get(server.pk, ()),
                viewer=viewer,
                ask=ask,
            )
            for server in servers
        )
    )
    return sorted(cards, key=_place)


def _place(card: Card) -> tuple[bool, int, str]:
    """Offline servers last; before them by what they are the default for, then by name."""
    return card.state == State.UNREACHABLE, card.line.rank, card.server.name.lower()


async def _card(
    server: Server,
    health: services.Health,
    activities: Mapping[str, services.ModelActivity],
    slot_files: SlotFileSummary | None,
    findings: Sequence[str],
    *,
    viewer: User,
    ask: bool,
) -> Card:
    # A router and llama-swap have slots per model; the others one row for all.
    scopes = server.loaded_models if server.swaps else [""]
    may_ask = ask and health.state == State.READY and not server.facts.sleeping
    few_models = asyncio.Semaphore(MODELS_AT_ONCE)

    async def of_scope(scope: str) -> tuple[permits.Occupancy, list[SlotStatus]]:
        async with few_models:
            return await permits.read_occupancy(slot_terms(server, scope)), await _slots(
                server, scope, ask=may_ask
            )

    async with _few_cards.get():
        found, buckets, model_waits = await asyncio.gather(
            asyncio.gather(*map(of_scope, scopes)),
            permits.usage_history(server.pk),
            permits.read_model_waits(server.pk),
        )
    occupancies, slots = [one for one, _ in found], [one for _, one in found]
    return build_card(
        server,
        health=health,
        occupancies=dict(zip(scopes, occupancies, strict=True)),
        slots=dict(zip(scopes, slots, strict=True)),
        buckets=buckets,
        activities=activities,
        viewer=viewer,
        slot_files=slot_files,
        findings=findings,
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
