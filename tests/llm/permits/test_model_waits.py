"""Programs that wait for a model are counted, each of their requests once."""

import asyncio

import pytest

from apps.llm.permits import Lane, ModelInUse, ModelWait, read_model_waits, terms
from apps.servers.models import Server
from apps.servers.services import hold_slot
from tests.llm.permits.gauge import a_swapping_server, cancel, later
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("loop_closed", "nobody_stays")


@pytest.fixture(autouse=True)
def _slow_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms, "MODEL_PAUSE_SECONDS", 60.0)
    monkeypatch.setattr(terms, "WAITER_SECONDS", 60.0)


async def ask(server: Server, lane: Lane, request: str, person: int | None = None) -> None:
    """Ask for the model blue as a program does."""
    async with hold_slot(
        server, lane=lane, model="blue", owner=1, share="7", request=request, person=person
    ):
        pass


async def waits(server: Server, *expected: ModelWait) -> None:
    async def are_there() -> bool:
        return await read_model_waits(server.pk) == list(expected)

    await until(are_there)


async def test_a_request_that_asks_again_waits_once_until_it_has_its_model() -> None:
    server = a_swapping_server("red")
    async with hold_slot(server, lane=Lane.INTERACTIVE, model="red", person=3):
        for request in ("one", "two", "one"):
            with pytest.raises(ModelInUse):
                await ask(server, Lane.AGENT, request)
        with pytest.raises(ModelInUse):
            await ask(server, Lane.BATCH, "row")  # rows show their reason at their job
        assert await read_model_waits(server.pk) == [ModelWait("blue", 2, 2)]
        person = asyncio.create_task(ask(server, Lane.INTERACTIVE, "three", person=1))
        await waits(server, ModelWait("blue", 3, 2))
    await person
    await waits(server, ModelWait("blue", 2, 2))
    await ask(server, Lane.AGENT, "one")
    await waits(server, ModelWait("blue", 1, 1))
    await later(server, 61)  # the program of the last one left
    assert await read_model_waits(server.pk) == []


async def test_who_then_waits_for_a_slot_waits_for_no_model() -> None:
    server = a_swapping_server("red", width=1)
    async with hold_slot(server, lane=Lane.INTERACTIVE, model="red", person=3):
        with pytest.raises(ModelInUse):
            await ask(server, Lane.AGENT, "one")
    await later(server, 30)
    async with hold_slot(server, lane=Lane.INTERACTIVE, model="blue", person=3):
        assert await read_model_waits(server.pk) == [ModelWait("blue", 1, 1)]
        waiting = asyncio.create_task(ask(server, Lane.AGENT, "one"))
        await waits(server)
        await cancel(waiting)
