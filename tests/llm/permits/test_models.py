"""Permits where only some models fit at once."""

import asyncio

import pytest
from pytest_django import Settings

from apps.llm import permits
from apps.llm.permits import Lane, ModelInUse, NoSlot, SlotTaken
from apps.servers.services import hold_slot
from tests.llm.permits.gauge import (
    PATIENCE,
    Gauge,
    a_swapping_server,
    later,
    until_held,
    until_row_refused,
)

pytestmark = pytest.mark.usefixtures("loop_closed", "nobody_stays")


async def test_rows_of_another_model_wait_until_those_of_the_loaded_one_are_done() -> None:
    server = a_swapping_server("red")
    async with hold_slot(server, lane=Lane.BATCH, model="red"):
        blue = asyncio.create_task(Gauge(server).row(model="blue"))
        assert await until_row_refused(server) == "model:red"
        assert not blue.done()
        reason = await asyncio.to_thread(permits.describe_batch_wait, server.pk)
        assert reason == "Waiting: red is in use, and the server would have to unload it."
        with pytest.raises(ModelInUse, match="red is in use"):
            async with hold_slot(server, lane=Lane.BATCH, model="blue"):
                pass
    await asyncio.wait_for(blue, PATIENCE)


async def test_rows_do_not_push_out_a_model_that_a_person_used_lately(
    settings: Settings,
) -> None:
    settings.KEEP_MODEL_SECONDS = 60
    server = a_swapping_server("red")
    async with hold_slot(server, lane=Lane.INTERACTIVE, model="red"):
        pass
    assert await permits.recent_models_of_people(server.pk) == {"red"}
    blue = asyncio.create_task(Gauge(server).row(model="blue"))
    await until_row_refused(server)
    assert not blue.done()
    await later(server, 60)
    await asyncio.wait_for(blue, PATIENCE)


async def test_a_question_for_another_model_ends_all_rows_in_its_way() -> None:
    server = a_swapping_server("red", width=2)
    gauge = Gauge(server)
    rows = [asyncio.create_task(gauge.hold(model="red", forever=True)) for _ in range(2)]
    await until_held(server, batch=2)
    async with asyncio.timeout(PATIENCE), hold_slot(server, lane=Lane.INTERACTIVE, model="blue"):
        outcomes = await asyncio.gather(*rows, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [SlotTaken, SlotTaken]


async def test_loaded_models_work_side_by_side() -> None:
    server = a_swapping_server("red", "blue", width=1)
    async with (
        asyncio.timeout(PATIENCE),
        hold_slot(server, lane=Lane.INTERACTIVE, model="red"),
        hold_slot(server, lane=Lane.BATCH, model="blue"),
    ):
        pass


async def test_idle_lane_loads_no_model() -> None:
    with pytest.raises(NoSlot):
        async with hold_slot(a_swapping_server("red"), lane=Lane.IDLE, model="blue"):
            pass


async def test_nobody_waits_where_there_is_room_for_another_model(settings: Settings) -> None:
    settings.KEEP_MODEL_SECONDS = 60
    server = a_swapping_server("red", at_once=2)
    async with (
        asyncio.timeout(PATIENCE),
        hold_slot(server, lane=Lane.INTERACTIVE, model="red"),
        hold_slot(server, lane=Lane.BATCH, model="blue"),
    ):
        assert (await permits.permits_in_flight(server.pk))[Lane.BATCH] == 1


async def test_a_question_ends_no_rows_where_there_is_room() -> None:
    server = a_swapping_server("red", at_once=2)
    async with (
        asyncio.timeout(PATIENCE),
        hold_slot(server, lane=Lane.BATCH, model="red"),
        hold_slot(server, lane=Lane.INTERACTIVE, model="blue"),
    ):
        assert (await permits.permits_in_flight(server.pk))[Lane.BATCH] == 1


async def test_a_third_model_waits_for_two_in_use(settings: Settings) -> None:
    settings.KEEP_MODEL_SECONDS = 60
    server = a_swapping_server("red", "blue", at_once=2)
    server.stored_facts["models"].append({"id": "green", "state": "unloaded", "slots": 4})
    async with hold_slot(server, lane=Lane.INTERACTIVE, model="red"):
        async with hold_slot(server, lane=Lane.INTERACTIVE, model="green"):
            pass
        with pytest.raises(ModelInUse, match="green, red"):
            async with hold_slot(
                a_swapping_server("red", at_once=2), lane=Lane.BATCH, model="blue"
            ):
                pass


async def test_a_model_that_was_unloaded_needs_no_protection(settings: Settings) -> None:
    settings.KEEP_MODEL_SECONDS = 600
    async with hold_slot(a_swapping_server("red"), lane=Lane.INTERACTIVE, model="red"):
        pass
    await later(a_swapping_server("red"), 60)
    async with (
        asyncio.timeout(PATIENCE),
        hold_slot(a_swapping_server(), lane=Lane.BATCH, model="blue"),
    ):
        pass


async def test_a_model_that_nobody_serves_is_in_nobodys_way(settings: Settings) -> None:
    settings.KEEP_MODEL_SECONDS = 60
    server = a_swapping_server("red")
    async with hold_slot(server, lane=Lane.INTERACTIVE, model="nope"):
        pass
    assert await permits.recent_models_of_people(server.pk) == set()
    async with asyncio.timeout(PATIENCE), hold_slot(server, lane=Lane.BATCH, model="blue"):
        pass
