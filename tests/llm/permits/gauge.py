"""Servers of so many slots, and holders of permits to count."""

import asyncio
import json
from typing import Any

from apps.llm.permits import Lane, ModelInUse, SlotTaken, permits_in_flight, read_occupancy
from apps.llm.permits.keys import permit_key
from apps.runtime.redis import async_redis
from apps.servers.models import Kind, Server, State
from apps.servers.services import hold_slot, slot_terms
from tests.waiting import until

PATIENCE = 150.0  # seconds, for what takes milliseconds on a machine that has nothing else to do


def a_server(width: int = 4, *, pool: int | None = None) -> Server:
    facts = {"slots": width, "context": pool}
    unified = pool is not None
    return Server(
        pk=7, kind=Kind.LLAMA_SERVER, state=State.READY, stored_facts=facts, kv_unified=unified
    )


def a_swapping_server(*loaded: str, width: int = 4, at_once: int | None = None) -> Server:
    states = {name: "loaded" if name in loaded else "unloaded" for name in ("red", "blue")}
    models = [{"id": name, "state": state, "slots": width} for name, state in states.items()]
    facts = {"slots": width, "models": models, "at_once": at_once}
    return Server(pk=7, kind=Kind.LLAMA_SWAP, stored_facts=facts)


class Gauge:
    """How many hold a permit, and the most there ever were.

    Holders stay until `overlap` of them have held one at the same time, and for some questions to
    Redis more, so that one too many would be seen.
    """

    def __init__(self, server: Server, *, overlap: int = 1) -> None:
        self.server, self.overlap = server, overlap
        self.now = self.most = self.taken = 0

    async def hold(self, lane: Lane = Lane.BATCH, *, forever: bool = False, **claim: Any) -> None:
        async with hold_slot(self.server, lane=lane, **claim):
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                if forever:
                    await asyncio.Event().wait()
                await until(lambda: self.most >= self.overlap, what=f"{self.overlap} holders")
                for _ in range(3):
                    await async_redis().ping()
            finally:
                self.now -= 1

    async def row(self, *, forever: bool = False, **claim: Any) -> None:
        """Starts again when a person took the slot, as the pump does."""
        while True:
            try:
                return await self.hold(Lane.BATCH, forever=forever, **claim)
            except SlotTaken:
                self.taken += 1
            except ModelInUse:
                await asyncio.sleep(0.02)  # the pump, too, asks again after a pause


async def until_held(server: Server, *, batch: int = 0, interactive: int = 0) -> None:
    """Returns when so many permits are held."""

    async def as_many() -> bool:
        held = await permits_in_flight(server.pk)
        return (held[Lane.BATCH], held[Lane.INTERACTIVE]) == (batch, interactive)

    await until(as_many, what=f"{batch} rows and {interactive} questions with a permit")


async def until_waiting(server: Server, number: int) -> None:
    """Returns when so many people's requests wait."""

    async def as_many() -> bool:
        return len((await read_occupancy(slot_terms(server))).waiting) == number

    await until(as_many, what=f"{number} questions that wait")


async def until_row_refused(server: Server) -> str:
    """Returns why a row that asked for a slot got none."""

    async def wait_reason() -> str:
        return (await read_occupancy(slot_terms(server))).wait_reason

    await until(wait_reason, what="a row without a slot")
    return await wait_reason()


async def later(server: Server, seconds: int) -> None:
    """As if so much time had passed since people, models and refusals, and for models that wait."""
    redis, back = async_redis(), -seconds * 1000
    for part in ("people", "models", "model-waits"):
        for member in await redis.zrange(permit_key(server.pk, part), 0, -1):
            await redis.zincrby(permit_key(server.pk, part), back, member)
    uses = permit_key(server.pk, "model-uses")
    for model, stored in (await redis.hgetall(uses)).items():
        times = {name: moment + back for name, moment in json.loads(stored).items()}
        await redis.hset(uses, model, json.dumps(times))
    limit = permit_key(server.pk, f"limit:{server.slot_scope('')}")
    if await redis.exists(limit):
        await redis.hincrby(limit, "since", back)
        await redis.hincrby(limit, "until", back)


async def cancel(*tasks: "asyncio.Task[Any]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
