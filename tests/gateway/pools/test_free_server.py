"""A request that waits goes to a server with a free slot, where that is worth its prompt cache."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx2
import pytest
from asgiref.sync import sync_to_async

from apps.gateway import targets
from apps.gateway.pools import free_server
from apps.gateway.pools.free_server import Move
from apps.gateway.program_request import read_request
from apps.llm.events import Usage
from apps.llm.permits import Lane, read_occupancy
from apps.servers.models import Server
from apps.servers.services import Target, hold_slot, slot_terms
from tests.gateway.test_pools import WORKS, Fake
from tests.waiting import until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("nobody_stays", "loop_closed"),
]
BEGINNING = [{"role": "user", "content": "Where does it begin?"}]
LATER = [*BEGINNING, {"role": "assistant", "content": "Here."}, {"role": "user", "content": "And?"}]


@pytest.fixture
async def fakes(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[Fake]]:
    """Two servers with one slot each: the first has the conversation in its cache."""
    monkeypatch.setattr(targets, "failing", targets.Failing())
    both = [Fake("One", WORKS), Fake("Two", WORKS)]
    async with await both[0].start(), await both[1].start():
        for server in [one async for one in Server.objects.all()]:
            server.stored_facts = {**server.stored_facts, "slots": 1}
            await sync_to_async(server.save)()
        yield both


async def ask(program: httpx2.AsyncClient, messages: list[dict[str, str]], lane: str) -> None:
    body = {"model": "m", "messages": messages}
    headers = {"X-Workbench-Lane": lane}
    answer = await program.post("/v1/chat/completions", json=body, headers=headers)
    assert answer.status_code == 200


async def home_of(program: httpx2.AsyncClient, fakes: list[Fake]) -> tuple[Fake, Server, Fake]:
    """The server of the conversation, and the other one."""
    await ask(program, BEGINNING, "person")
    home, other = sorted(fakes, key=lambda fake: -fake.asked)
    assert (home.asked, other.asked) == (1, 0)
    return home, await Server.objects.aget(name=home.name), other


@pytest.mark.parametrize("lane", ["person", "agent"])
async def test_a_conversation_that_begins_goes_where_a_slot_is_free(
    program: httpx2.AsyncClient, fakes: list[Fake], lane: str
) -> None:
    home, server, other = await home_of(program, fakes)
    async with hold_slot(server, lane=Lane.INTERACTIVE, model="m", person=99):
        await asyncio.wait_for(ask(program, BEGINNING, lane), 150)
    assert (home.asked, other.asked) == (1, 1)


async def test_a_conversation_waits_for_its_cache_as_long_as_a_prefill_takes(
    program: httpx2.AsyncClient, fakes: list[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, server, other = await home_of(program, fakes)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(
            hold_slot(server, lane=Lane.INTERACTIVE, model="m", person=99)
        )
        asked = asyncio.create_task(ask(program, LATER, "person"))

        async def waits() -> bool:
            return bool((await read_occupancy(slot_terms(server, "m"))).waiting)

        monkeypatch.setattr(free_server, "TOKENS_PER_SECOND", 0.001)
        await until(waits)
        await stack.aclose()
        await asked
        assert (home.asked, other.asked) == (2, 0)
        monkeypatch.setattr(free_server, "TOKENS_PER_SECOND", 500)
        await stack.enter_async_context(
            hold_slot(server, lane=Lane.INTERACTIVE, model="m", person=99)
        )
        await asyncio.wait_for(ask(program, LATER, "person"), 150)
        assert (home.asked, other.asked) == (2, 1)


async def test_the_patience_is_that_of_the_rate_at_the_other_server(
    fakes: list[Fake],
) -> None:
    request = read_request("/v1/chat/completions", (), json.dumps({"messages": LATER}).encode())
    move, other = Move(request), Target(await Server.objects.aget(name="Two"), "m")
    tokens = len(request.body) / free_server.BYTES_PER_TOKEN
    assert await move.patience(other) == tokens / free_server.TOKENS_PER_SECOND
    async with hold_slot(other.server, lane=Lane.AGENT, model="m") as held:
        held.record_usage(Usage(4000, 0, 1, prefilled=4000, prefill_ms=400.0))
    assert await move.patience(other) == tokens / 10_000
    assert await Move(request, moves=2).patience(other) == tokens / 10_000 + 10
    assert await move.patience(Target(await Server.objects.aget(name="One"), "m")) > tokens / 501
    begins = read_request("/v1/chat/completions", (), json.dumps({"messages": BEGINNING}).encode())
    assert await Move(begins).patience(other) == 0


async def test_where_none_is_free_it_stays(program: httpx2.AsyncClient, fakes: list[Fake]) -> None:
    home, server, other = await home_of(program, fakes)
    away = await Server.objects.aget(name=other.name)
    async with hold_slot(away, lane=Lane.INTERACTIVE, model="m", person=98):
        async with hold_slot(server, lane=Lane.INTERACTIVE, model="m", person=99):
            asked = asyncio.create_task(ask(program, BEGINNING, "person"))

            async def waits() -> bool:
                return bool((await read_occupancy(slot_terms(server, "m"))).waiting)

            await until(waits)
        await asked
    assert (home.asked, other.asked) == (2, 0)
