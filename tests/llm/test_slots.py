"""Permits, on a real Redis."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from apps.core.redis import async_redis, close_async_redis
from apps.llm import slots
from apps.llm.slots import Lane, permit

SERVER = 7


@pytest.fixture(autouse=True)
async def _redis() -> AsyncIterator[None]:
    yield
    await close_async_redis()


class Gauge:
    """How many hold a permit, and the most there ever were."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def hold(self, lane: Lane, width: int, seconds: float = 0.02) -> None:
        async with permit(SERVER, width=width, lane=lane):
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(seconds)
            self.now -= 1


@pytest.mark.parametrize("width", [1, 4])
async def test_never_more_than_there_are_slots(width: int) -> None:
    gauge = Gauge()
    lanes = [Lane.BATCH, Lane.INTERACTIVE, Lane.BATCH] * 6
    await asyncio.gather(*(gauge.hold(lane, width) for lane in lanes))
    assert gauge.most == width
    assert await slots.in_flight(SERVER) == {Lane.INTERACTIVE: 0, Lane.BATCH: 0}


async def test_the_batch_fills_every_slot_while_nobody_chats() -> None:
    gauge = Gauge()
    await asyncio.gather(*(gauge.hold(Lane.BATCH, 4) for _ in range(12)))
    assert gauge.most == 4


async def test_the_batch_leaves_a_slot_free_after_a_person_was_there() -> None:
    gauge = Gauge()
    await gauge.hold(Lane.INTERACTIVE, 4)
    gauge = Gauge()
    await asyncio.gather(*(gauge.hold(Lane.BATCH, 4) for _ in range(12)))
    assert gauge.most == 3


async def test_a_person_on_a_server_with_one_slot_does_not_stop_the_batch_for_good() -> None:
    gauge = Gauge()
    await gauge.hold(Lane.INTERACTIVE, 1)
    await asyncio.wait_for(gauge.hold(Lane.BATCH, 1), timeout=2)


async def test_says_once_that_it_waits() -> None:
    said: list[str] = []
    async with permit(SERVER, width=1, lane=Lane.INTERACTIVE):

        async def second() -> None:
            async with permit(
                SERVER, width=1, lane=Lane.INTERACTIVE, waiting=lambda: said.append("waiting")
            ):
                pass

        waiter = asyncio.create_task(second())
        await asyncio.sleep(0.1)
        assert not waiter.done()
    await waiter
    assert said == ["waiting"]


async def test_a_cancelled_holder_leaves_nothing_behind() -> None:
    gauge = Gauge()
    holder = asyncio.create_task(gauge.hold(Lane.INTERACTIVE, 1, seconds=60))
    await asyncio.sleep(0.05)
    assert (await slots.in_flight(SERVER))[Lane.INTERACTIVE] == 1
    holder.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holder
    assert (await slots.in_flight(SERVER))[Lane.INTERACTIVE] == 0


async def test_the_permit_of_a_dead_process_lapses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed neither renews nor gives back."""
    monkeypatch.setattr(slots, "LEASE_SECONDS", 0.2)
    await slots._take(SERVER, "of a dead process", 1, Lane.BATCH, None)
    gauge = Gauge()
    await asyncio.wait_for(gauge.hold(Lane.BATCH, 1), timeout=2)


async def test_a_long_answer_keeps_its_permit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "LEASE_SECONDS", 0.3)
    monkeypatch.setattr(slots, "RENEW_SECONDS", 0.05)
    async with permit(SERVER, width=1, lane=Lane.BATCH):
        await asyncio.sleep(0.6)
        assert (await slots.in_flight(SERVER))[Lane.BATCH] == 1


async def test_servers_do_not_share_slots() -> None:
    async with (
        permit(1, width=1, lane=Lane.BATCH),
        permit(2, width=1, lane=Lane.BATCH),
    ):
        assert await async_redis().zcard("slots:1:batch") == 1
