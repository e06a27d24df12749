"""Permits: agents between people and batch, and turns in every lane."""

import asyncio
from typing import Any

import pytest
from pytest_django import Settings

from apps.llm.permits import Lane, SlotTaken, permits_in_flight
from apps.llm.permits.keys import permit_key
from apps.runtime.redis import async_redis
from apps.servers.models import Server
from apps.servers.services import hold_slot
from tests.llm.permits.gauge import PATIENCE, Gauge, a_server, cancel, until_held, until_waiting
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("loop_closed", "nobody_stays")


@pytest.fixture(autouse=True)
def _nobody_lapses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.llm.permits.terms.WAITER_SECONDS", PATIENCE)
    monkeypatch.setattr("apps.llm.permits.terms.LEASE_SECONDS", PATIENCE)


async def until_queued(server: Server, number: int) -> None:
    """Returns when so many requests of any lane wait."""

    async def as_many() -> bool:
        return (await async_redis().hlen(permit_key(server.pk))) == number

    await until(as_many, what=f"{number} entries")


async def order_of(server: Server, asked: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """Return the order in which requests get the only slot, which they all wait for at first."""
    order: list[str] = []

    async def ask(name: str, claim: dict[str, Any]) -> None:
        async with hold_slot(server, **claim):
            order.append(name)

    tasks = []
    async with asyncio.timeout(PATIENCE):
        async with hold_slot(server, lane=Lane.INTERACTIVE, person=99):
            for number, (name, claim) in enumerate(asked):
                tasks.append(asyncio.create_task(ask(name, claim)))
                await until_queued(server, number + 2)
        await asyncio.gather(*tasks)
    return order


def claim(lane: Lane, owner: int = 1, share: str = "") -> dict[str, Any]:
    person = owner if lane is Lane.INTERACTIVE else None
    return {"lane": lane, "owner": owner, "person": person, "share": share, "waits": True}


async def test_people_come_first_then_agents_batch_and_idle() -> None:
    lanes = [Lane.IDLE, Lane.BATCH, Lane.AGENT, Lane.INTERACTIVE]
    order = await order_of(a_server(1), [(lane, claim(lane)) for lane in lanes])
    assert order == ["interactive", "agent", "batch", "idle"]


@pytest.mark.parametrize("lane", [Lane.AGENT, Lane.BATCH, Lane.IDLE])
async def test_every_lane_goes_by_turns_of_its_owners(lane: Lane) -> None:
    asked = [*(("first", claim(lane, 1)) for _ in range(4)), ("second", claim(lane, 2))]
    order = await order_of(a_server(1), asked)
    assert order.index("second") < 2
    assert len(order) == 5


async def test_keys_of_one_person_take_turns_too() -> None:
    one, other = claim(Lane.AGENT, 1, "one"), claim(Lane.AGENT, 1, "other")
    asked = [*(("one", one) for _ in range(4)), ("other", other), ("else", claim(Lane.AGENT, 2))]
    order = await order_of(a_server(1), asked)
    assert set(order[:3]) == {"one", "other", "else"}


@pytest.mark.parametrize("lane", [Lane.INTERACTIVE, Lane.AGENT, Lane.BATCH])
async def test_requests_with_the_same_beginning_stay_together(lane: Lane) -> None:
    one, other = {**claim(lane, 1), "prefix": "one"}, {**claim(lane, 1), "prefix": "other"}
    asked = [("one", one), ("other", other), ("one", one), ("other", other), ("one", one)]
    order = await order_of(a_server(1), asked)
    assert order == ["one", "one", "one", "other", "other"]


async def test_the_same_beginning_costs_others_no_turn_and_no_more_than_some_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, other = {**claim(Lane.AGENT, 1), "prefix": "one"}, {**claim(Lane.AGENT, 1), "prefix": "b"}
    asked = [("one", one), ("one", one), ("else", claim(Lane.AGENT, 2)), ("other", other)]
    assert (await order_of(a_server(1), asked)).index("else") == 1
    monkeypatch.setattr("apps.llm.permits.terms.GROUPED_SECONDS", 0.0)
    asked = [("one", one), ("other", other), ("one", one)]
    assert await order_of(a_server(1), asked) == ["one", "other", "one"]


async def test_an_agent_takes_a_rows_slot_and_keeps_its_own() -> None:
    server = a_server(1)
    gauge = Gauge(server)
    row = asyncio.create_task(gauge.hold(forever=True))
    await until_held(server, batch=1)
    async with asyncio.timeout(PATIENCE):
        agent = asyncio.create_task(gauge.hold(Lane.AGENT, owner=1, forever=True))
        with pytest.raises(SlotTaken):
            await row
        await until(lambda: gauge.now == 1)
        person = asyncio.create_task(gauge.hold(Lane.INTERACTIVE, person=2, forever=True))
        await until_waiting(server, 1)
        assert not agent.done()
        await cancel(agent)
        await until_held(server, interactive=1)
    await cancel(person)


async def test_agents_leave_slots_free_for_people_who_are_active(settings: Settings) -> None:
    settings.IDLE_AFTER_CHAT_SECONDS = 60
    server = a_server(2)
    gauge = Gauge(server)
    await gauge.hold(Lane.INTERACTIVE, person=1)
    agents = [asyncio.create_task(gauge.hold(Lane.AGENT, owner=2, forever=True)) for _ in range(2)]
    await until_waiting(server, 1)
    async with asyncio.timeout(PATIENCE), hold_slot(server, lane=Lane.INTERACTIVE, person=1):
        assert (await permits_in_flight(server.pk))[Lane.AGENT] == 1
    await cancel(*agents)


@pytest.mark.parametrize("lane", [Lane.BATCH, Lane.IDLE])
async def test_who_waited_for_long_comes_one_lane_up_and_keeps_the_slot(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.llm.permits.terms.PATIENCE_SECONDS", -1.0)
    server, above = a_server(1), Lane.AGENT if lane is Lane.BATCH else Lane.BATCH
    # One of the lane above has had its turn, so the one that waited is next.
    asked = [("above", claim(above, 1)), ("above", claim(above, 1)), ("waited", claim(lane, 2))]
    if above is Lane.AGENT:
        assert (await order_of(server, asked))[1] == "waited"
    async with asyncio.timeout(PATIENCE), hold_slot(server, **claim(lane, 2)):
        agent = asyncio.create_task(Gauge(server).hold(Lane.AGENT, owner=1))
        if lane is Lane.BATCH:
            await until_waiting(server, 1)
    await agent


async def test_who_got_a_slot_meanwhile_has_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("apps.llm.permits.terms.PATIENCE_SECONDS", 0.0)
    server = a_server(1)
    async with hold_slot(server, **claim(Lane.BATCH, 2)):
        pass
    monkeypatch.setattr("apps.llm.permits.terms.PATIENCE_SECONDS", PATIENCE)
    asked = [("batch", claim(Lane.BATCH, 2)), ("agent", claim(Lane.AGENT, 1))]
    assert await order_of(server, asked) == ["agent", "batch"]


async def test_people_take_the_slot_of_work_that_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("apps.llm.permits.terms.PATIENCE_SECONDS", -1.0)
    server = a_server(1)
    row = asyncio.create_task(Gauge(server).hold(forever=True))
    await until_held(server, batch=1)
    async with asyncio.timeout(PATIENCE), hold_slot(server, lane=Lane.INTERACTIVE, person=1):
        with pytest.raises(SlotTaken):
            await row
