"""Requests of programs hold slots as everybody's do, and give them back."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest
from asgiref.sync import sync_to_async

from apps.gateway.application import Gateway
from apps.llm import permits
from apps.llm.permits import Lane, read_totals
from apps.servers.models import Server, State
from apps.servers.services import hold_slot, refresh_server, slot_terms
from tests.conftest import SLOTS
from tests.llama_process import LlamaProcess
from tests.waiting import until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("nobody_stays", "loop_closed"),
]
LONG = {
    "messages": [{"role": "user", "content": "Say much."}],
    "max_tokens": 3000,
    "ignore_eos": True,
    "seed": 5,
}


class Program:
    """One request over a connection that can be closed at any moment."""

    def __init__(
        self,
        token: str,
        body: dict[str, Any],
        *,
        reads_on: bool = True,
        leaves_at_the_end: bool = False,
    ) -> None:
        """
        Args:
            reads_on: False: it takes no more than the first piece, so its request stays in flight.
        """
        self._reads_on = reads_on
        self.sent: list[dict[str, Any]] = []
        self.has_answer = asyncio.Event()
        self._left = asyncio.Event()
        self._leaves_at_the_end = leaves_at_the_end
        self._body: bytes | None = json.dumps(body).encode()
        self.scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/chat/completions",
            "headers": [(b"authorization", f"Bearer {token}".encode())],
        }

    async def receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)
        if message["type"] == "http.response.body":
            self.has_answer.set()
            if not self._reads_on:
                await asyncio.Event().wait()
            if self._leaves_at_the_end and not message.get("more_body"):
                self.leave()
                for _ in range(10):
                    await asyncio.sleep(0)  # as where the socket takes no more for a moment

    def leave(self) -> None:
        self._left.set()


async def in_flight(server: Server, lane: Lane) -> int:
    return (await permits.permits_in_flight(server.pk))[lane]


async def test_who_leaves_frees_the_slot(
    gateway: Gateway, token: str, server: Server, llama: LlamaProcess, idle_slots: None
) -> None:
    program = Program(token, {**LONG, "stream": True}, reads_on=False)
    serving = asyncio.create_task(gateway(program.scope, program.receive, program.send))
    await program.has_answer.wait()
    assert await in_flight(server, Lane.INTERACTIVE) == 1
    program.leave()
    await serving
    assert await in_flight(server, Lane.INTERACTIVE) == 0
    llama.wait_until_idle()


async def test_who_leaves_the_queue_is_not_waited_for(
    gateway: Gateway, token: str, server: Server
) -> None:
    seen = await refresh_server(server)
    async with AsyncExitStack() as stack:
        for _ in range(SLOTS):
            await stack.enter_async_context(hold_slot(seen, lane=Lane.INTERACTIVE, person=99))
        program = Program(token, LONG)
        serving = asyncio.create_task(gateway(program.scope, program.receive, program.send))

        async def waits() -> bool:
            return bool((await permits.read_occupancy(slot_terms(seen))).waiting)

        await until(waits)
        program.leave()
        await serving
        assert not program.sent


async def test_batch_gives_its_slot_to_a_person_and_is_answered_once(
    program: httpx2.AsyncClient, server: Server
) -> None:
    seen = await refresh_server(server)
    body = {**LONG, "max_tokens": 1200, "temperature": 0}
    plain = await program.post("/v1/chat/completions", json=body)
    lane = {"X-Workbench-Lane": "batch"}
    asked = asyncio.create_task(program.post("/v1/chat/completions", json=body, headers=lane))

    async def works() -> bool:
        return await in_flight(server, Lane.BATCH) == 1

    await until(works)
    async with AsyncExitStack() as stack:
        for _ in range(SLOTS):
            await stack.enter_async_context(hold_slot(seen, lane=Lane.INTERACTIVE, person=99))
        assert await in_flight(server, Lane.BATCH) == 0
    answer = await asked
    assert answer.status_code == 200
    counts = (await sync_to_async(read_totals)([server.pk]))[server.pk]
    assert sum(model["requests"] for model in counts.values()) == 2
    content = [one.json()["choices"][0]["message"]["content"] for one in (plain, answer)]
    assert content[0] == content[1]


async def test_slots_name_the_program_and_its_key(
    gateway: Gateway, token: str, server: Server, idle_slots: None
) -> None:
    program = Program(token, {**LONG, "stream": True}, reads_on=False)
    program.scope["headers"] += [(b"user-agent", b"aider/0.9 python")]  # type: ignore[operator]
    serving = asyncio.create_task(gateway(program.scope, program.receive, program.send))
    await program.has_answer.wait()
    seen = await permits.read_occupancy(slot_terms(await refresh_server(server)))
    assert [permit.label for permit in seen.held] == ["aider · key laptop"]
    program.leave()
    await serving


async def test_who_leaves_with_the_answer_is_counted(
    gateway: Gateway, token: str, server: Server
) -> None:
    program = Program(token, {**LONG, "max_tokens": 4}, leaves_at_the_end=True)
    await gateway(program.scope, program.receive, program.send)
    assert await in_flight(server, Lane.INTERACTIVE) == 0
    counts = (await sync_to_async(read_totals)([server.pk]))[server.pk]
    assert sum(model["requests"] for model in counts.values()) == 1
    seen = await Server.objects.aget()
    assert seen.state == State.READY
