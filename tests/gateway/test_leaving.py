"""A program that closes its connection frees its slot, wherever its request stands."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from apps.gateway.application import Gateway
from apps.llm.permits import Lane
from apps.llm.permits.keys import permit_key
from apps.runtime.redis import async_redis
from apps.servers.models import Server
from apps.servers.services import hold_slot, refresh_server
from tests.conftest import SLOTS
from tests.gateway.raw_program import LONG, Program
from tests.llama_process import LlamaProcess
from tests.waiting import until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("nobody_stays", "loop_closed", "idle_slots"),
]
FREE_WITHIN = 0.5  # seconds; a tenth of it where the machine has nothing else to do
TRIES = 5  # of which one counts: the machine may be busy


def begun(gateway: Gateway, program: Program) -> "asyncio.Task[None]":
    return asyncio.create_task(gateway(program.scope, program.receive, program.send))


async def seconds_until_free(
    server: Server, program: Program, serving: "asyncio.Task[None]"
) -> float:
    """Close the connection; return the time until the server has no permit of it and no place."""

    async def is_free() -> bool:
        entries = await async_redis().hvals(permit_key(server.pk))
        return not any(b"key laptop" in entry for entry in entries)

    program.leave()
    seconds = await until(is_free, every=0.002)
    await serving
    return seconds


async def until_in_queue(server: Server, entries: int) -> None:
    async def is_in_queue() -> bool:
        return await async_redis().hlen(permit_key(server.pk)) == entries

    await until(is_in_queue, every=0.002)


@pytest.mark.parametrize("lane", ["person", "agent", "batch", "idle"])
async def test_while_it_waits(gateway: Gateway, token: str, server: Server, lane: str) -> None:
    seen, took = await refresh_server(server), []
    async with AsyncExitStack() as stack:
        for _ in range(SLOTS):
            await stack.enter_async_context(hold_slot(seen, lane=Lane.INTERACTIVE, person=99))
        for _ in range(TRIES):
            program = Program(token, LONG)
            program.scope["headers"] += [(b"x-workbench-lane", lane.encode())]  # type: ignore[operator]
            serving = begun(gateway, program)
            await until_in_queue(seen, SLOTS + 1)
            took.append(await seconds_until_free(seen, program, serving))
            assert not program.sent
    assert min(took) < FREE_WITHIN


@pytest.mark.parametrize("stream", [False, True])
async def test_while_its_prompt_is_read(
    gateway: Gateway, token: str, server: Server, stream: bool
) -> None:
    """The server has the request, answers nothing yet, and sees that its connection is closed."""
    reads, closed = asyncio.Event(), asyncio.Event()

    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b'"Say much."')
        reads.set()
        while await reader.read(1000):
            pass
        closed.set()
        writer.close()

    seen, took = await refresh_server(server), []
    async with await asyncio.start_server(read, "127.0.0.1", 0) as silent:
        seen.base_url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}/v1"
        await seen.asave()
        for _ in range(TRIES):
            reads.clear()
            closed.clear()
            program = Program(token, {**LONG, "model": seen.model_ids[0], "stream": stream})
            serving = begun(gateway, program)
            await reads.wait()
            seconds = await seconds_until_free(seen, program, serving)
            took.append(seconds + await until(closed.is_set, every=0.002))
            assert not program.sent
    assert min(took) < FREE_WITHIN


@pytest.mark.parametrize("lane", ["person", "agent"])
async def test_while_its_answer_is_written(
    gateway: Gateway, token: str, server: Server, llama: LlamaProcess, lane: str
) -> None:
    seen, took = await refresh_server(server), []
    for _ in range(TRIES):
        program = Program(token, {**LONG, "stream": True}, reads_on=False)
        program.scope["headers"] += [(b"x-workbench-lane", lane.encode())]  # type: ignore[operator]
        serving = begun(gateway, program)
        await program.has_answer.wait()
        took.append(await seconds_until_free(seen, program, serving))
        llama.wait_until_idle()
    assert min(took) < FREE_WITHIN
