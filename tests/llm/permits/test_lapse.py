"""Permits whose holders, processes or Redis come to grief."""

import asyncio
import json

import pytest

from apps.llm import permits
from apps.llm.permits import Lane, SlotTaken, permit_holder
from apps.llm.permits.keys import permit_key
from apps.runtime.redis import async_redis
from apps.servers.services import hold_slot, slot_terms
from tests.llm.permits.gauge import (
    PATIENCE,
    Gauge,
    a_server,
    cancel,
    until_held,
    until_row_refused,
    until_waiting,
)
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("loop_closed", "nobody_stays")


async def test_a_cancelled_holder_leaves_nothing_behind() -> None:
    server = a_server(1)
    holder = asyncio.create_task(Gauge(server).hold(Lane.INTERACTIVE, forever=True))
    await until_held(server, interactive=1)
    holder.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holder
    await until_held(server)


async def test_who_gives_up_waiting_leaves_nothing_behind() -> None:
    server = a_server(1)
    async with hold_slot(server, lane=Lane.INTERACTIVE):
        waiter = asyncio.create_task(Gauge(server).hold(Lane.INTERACTIVE))
        await until_waiting(server, 1)
        await cancel(waiter)
        assert not (await permits.read_occupancy(slot_terms(server))).waiting


async def test_the_permit_of_a_dead_process_lapses() -> None:
    """A process that is killed neither renews nor gives back."""
    server = a_server(1)

    async def dead_ends_in(milliseconds: int) -> None:
        seconds, _ = await async_redis().time()
        dead = dict.fromkeys(("scope", "model", "label", "person"), "") | {"lane": "batch"}
        dead |= {"owner": 0, "tokens": 0, "since": 0, "ends": seconds * 1000 + milliseconds}
        await async_redis().hset(permit_key(server.pk), "of a dead process", json.dumps(dead))

    await dead_ends_in(60_000)
    row = asyncio.create_task(Gauge(server).row())
    await until_row_refused(server)
    assert not row.done()
    await dead_ends_in(-1)
    await asyncio.wait_for(row, PATIENCE)


async def test_a_long_answer_keeps_its_permit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permit_holder, "RENEW_SECONDS", 0.05)
    server = a_server(1)

    async def ends() -> int:
        [entry] = await async_redis().hvals(permit_key(server.pk))
        end: int = json.loads(entry)["ends"]
        return end

    async with hold_slot(server, lane=Lane.BATCH):
        first = await ends()

        async def is_renewed() -> bool:
            return await ends() > first

        await until(is_renewed)


async def test_permits_that_redis_lost_are_registered_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(permit_holder, "RENEW_SECONDS", 0.05)
    server = a_server(1)
    async with hold_slot(server, lane=Lane.INTERACTIVE):
        await async_redis().flushall()
        await until_held(server, interactive=1)


async def test_a_permit_taken_back_while_nobody_listened_is_given_up_at_its_renewal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(permit_holder, "RENEW_SECONDS", 0.05)
    monkeypatch.setattr(permit_holder.PermitHolder, "_handle", lambda *_: None)
    monkeypatch.setattr(permit_holder, "SUBSCRIBE_SECONDS", 0.05)
    server = a_server(1)
    row = asyncio.create_task(Gauge(server).hold(forever=True))
    await until_held(server, batch=1)
    async with asyncio.timeout(PATIENCE), hold_slot(server, lane=Lane.INTERACTIVE):
        with pytest.raises(SlotTaken):
            await row
