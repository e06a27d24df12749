"""Programs on different models of a server that holds one: they take turns of many requests."""

import asyncio
import json
from contextlib import suppress

import pytest
from pytest_django import Settings

from apps.llm.permits import Lane, ModelInUse, SlotTaken, terms
from apps.llm.permits.keys import permit_key
from apps.runtime.redis import async_redis
from apps.servers.models import Server
from apps.servers.services import hold_slot
from tests.llm.permits.gauge import PATIENCE, Gauge, a_swapping_server, later, until_held
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("loop_closed", "nobody_stays")


async def ask(server: Server, model: str, lane: Lane = Lane.AGENT) -> None:
    async with asyncio.timeout(PATIENCE), hold_slot(server, lane=lane, model=model):
        pass


async def refused(server: Server, model: str, lane: Lane = Lane.AGENT) -> str:
    """The model for which it is refused."""
    with pytest.raises(ModelInUse) as error:
        await ask(server, model, lane)
    return error.value.model


@pytest.fixture(autouse=True)
def _slow_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lapses by itself lapses by `later` alone, also on a machine that is busy."""
    monkeypatch.setattr(terms, "MODEL_PAUSE_SECONDS", 60.0)
    monkeypatch.setattr(terms, "WAITER_SECONDS", 60.0)


@pytest.fixture
def no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms, "MODEL_TURN_SECONDS", 0.0)


async def test_a_model_stays_between_the_requests_of_an_agent() -> None:
    server = a_swapping_server("red")
    await ask(server, "red")
    for lane in (Lane.AGENT, Lane.BATCH):
        assert await refused(server, "blue", lane) == "red"
    await ask(server, "red")
    await later(server, 61)
    await ask(server, "blue")


async def test_who_wants_another_model_gets_it_after_a_turn(no_turn: None) -> None:
    server = a_swapping_server("red")
    async with hold_slot(server, lane=Lane.AGENT, model="red"):
        assert await refused(server, "blue") == "red"
        await ask(server, "red")
        assert await refused(server, "red") == "blue"
        assert await refused(server, "blue") == "red"  # still in flight
    await ask(server, "blue")
    await ask(server, "red")  # its turn again


async def test_who_waits_longest_is_next(no_turn: None) -> None:
    server = a_swapping_server("red")
    server.stored_facts["models"].append({"id": "green", "state": "unloaded", "slots": 4})
    async with hold_slot(server, lane=Lane.AGENT, model="red"):
        assert await refused(server, "blue") == "red"
    assert await refused(server, "green") == "blue"
    await ask(server, "blue")


async def test_who_no_longer_asks_holds_nobody_up(no_turn: None) -> None:
    server = a_swapping_server("red")
    async with hold_slot(server, lane=Lane.AGENT, model="red"):
        await refused(server, "blue")
    assert await refused(server, "red") == "blue"
    await later(server, 61)
    await ask(server, "red")


async def test_facts_of_some_seconds_ago_change_no_model_back() -> None:
    seen = a_swapping_server("red")
    await ask(seen, "blue")
    assert await refused(seen, "red") == "blue"
    await ask(seen, "blue")
    await later(seen, 61)  # the facts are newer than that
    await ask(seen, "red")


async def test_models_side_by_side_are_in_nobodys_way() -> None:
    server = a_swapping_server("red", at_once=2)
    for _ in range(3):
        await ask(server, "red")
        await ask(server, "blue")


async def test_rows_make_way_for_an_agents_model_and_wait_meanwhile() -> None:
    server = a_swapping_server("red")
    row = asyncio.create_task(Gauge(server).hold(model="red", forever=True))
    await until_held(server, batch=1)
    assert await refused(server, "blue") == "red"
    with pytest.raises(SlotTaken):
        await row
    assert await refused(server, "red", Lane.BATCH) == "blue"
    await ask(server, "blue")


async def test_a_person_loads_their_model_at_once(settings: Settings) -> None:
    settings.KEEP_MODEL_SECONDS = 600
    server = a_swapping_server("red")
    await ask(server, "red")
    await ask(server, "blue", Lane.INTERACTIVE)
    assert await refused(server, "red") == "blue"


async def test_agents_do_not_give_way_to_one_that_waits_for_people(
    no_turn: None, settings: Settings
) -> None:
    settings.KEEP_MODEL_SECONDS = 600
    server = a_swapping_server("red")
    await ask(server, "red", Lane.INTERACTIVE)
    assert await refused(server, "blue") == "red"
    await ask(server, "red")
    await ask(server, "red", Lane.BATCH)


async def test_a_model_that_the_server_does_not_have_is_wanted_by_nobody(no_turn: None) -> None:
    server = a_swapping_server("red")
    with suppress(ModelInUse):
        await ask(server, "nope")
    await ask(server, "red")
    await ask(server, "red")


async def until_granted(server: Server, model: str, share: str) -> None:
    """Ask as a program of a person, which waits."""
    async with hold_slot(server, lane=Lane.INTERACTIVE, model=model, person=1, share=share):
        pass


async def test_programs_of_people_take_turns_among_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = a_swapping_server("red")
    await until_granted(server, "red", "key")
    asked = asyncio.create_task(until_granted(server, "blue", "other"))
    await until(lambda: wanted(server, "blue"), what="a program that waits for blue")
    await asyncio.wait_for(until_granted(server, "red", "key"), PATIENCE)
    assert not asked.done()
    monkeypatch.setattr(terms, "MODEL_TURN_SECONDS", 0.0)
    await asyncio.wait_for(asked, PATIENCE)


async def wanted(server: Server, model: str) -> bool:
    stored = await async_redis().hget(permit_key(server.pk, "model-uses"), model)
    return stored is not None and "asked:interactive" in json.loads(stored)


async def test_a_program_of_a_person_waits_for_no_agent(no_turn: None) -> None:
    server = a_swapping_server("red")
    server.stored_facts["models"].append({"id": "green", "state": "unloaded", "slots": 4})
    async with hold_slot(server, lane=Lane.AGENT, model="red"):
        assert await refused(server, "blue") == "red"
        await asyncio.wait_for(until_granted(server, "green", "key"), PATIENCE)


async def test_someone_at_the_workbench_waits_for_no_program() -> None:
    server = a_swapping_server("red")
    async with hold_slot(server, lane=Lane.INTERACTIVE, model="red", person=1, share="key"):
        await ask(server, "blue", Lane.INTERACTIVE)
