"""Requests of programs hold slots as everybody's do, and give them back."""

import asyncio
import json
from contextlib import AsyncExitStack

import httpx2
import pytest
from asgiref.sync import sync_to_async

from apps.gateway.application import Gateway
from apps.llm import permits
from apps.llm.permits import Lane, read_totals
from apps.servers.models import Server, State
from apps.servers.services import hold_slot, refresh_server, slot_terms
from tests.conftest import SLOTS
from tests.gateway.raw_program import LONG, Program
from tests.llama_process import LlamaProcess
from tests.waiting import until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("nobody_stays", "loop_closed"),
]
RESTARTS = "x-workbench-restarts"


async def in_flight(server: Server, lane: Lane) -> int:
    return (await permits.permits_in_flight(server.pk))[lane]


def written(answer: httpx2.Response) -> tuple[str, str]:
    """The text and the reason of its end, of a streamed answer too."""
    if answer.headers["content-type"] != "text/event-stream":
        choice = answer.json()["choices"][0]
        return choice["message"]["content"], choice["finish_reason"]
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    assert lines.pop() == "[DONE]"
    choices = [chunk["choices"][0] for chunk in map(json.loads, lines) if chunk["choices"]]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    return text, choices[-1]["finish_reason"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("lane", [Lane.BATCH, Lane.IDLE])
async def test_who_gives_its_slot_to_a_person_begins_again_and_writes_the_same(
    program: httpx2.AsyncClient,
    server: Server,
    llama: LlamaProcess,
    lane: Lane,
    stream: bool,
    idle_slots: None,
) -> None:
    seen = await refresh_server(server)
    body = {**LONG, "max_tokens": 1200, "temperature": 0, "stream": stream}
    plain = await program.post("/v1/chat/completions", json=body)
    header = {"X-Workbench-Lane": lane}

    async def works() -> bool:
        return await in_flight(server, lane) == 1

    async with AsyncExitStack() as stack:
        with llama.slowed():
            asking = program.post("/v1/chat/completions", json=body, headers=header)
            asked = asyncio.create_task(asking)
            await until(works)
            for _ in range(SLOTS):
                await stack.enter_async_context(hold_slot(seen, lane=Lane.INTERACTIVE, person=99))
        assert await in_flight(server, lane) == 0
    answer = await asked
    assert answer.status_code == 200
    assert RESTARTS not in plain.headers
    assert answer.headers[RESTARTS] == "1"
    assert written(answer) == written(plain)
    counts = (await sync_to_async(read_totals)([server.pk]))[server.pk]
    assert sum(model["requests"] for model in counts.values()) == 2


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


async def test_keys_and_servers_are_looked_up_once_a_moment_and_after_a_change(
    program: httpx2.AsyncClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.gateway.pools.look_ups.SERVERS_SECONDS", 60)
    monkeypatch.setattr("apps.core.models.api_keys.KEY_CACHE_SECONDS", 60)
    model = (await refresh_server(server)).model_ids[0]
    body = {"model": model, "prompt": "a", "max_tokens": 1}
    await server.asave()
    assert (await program.post("/v1/completions", json=body)).status_code == 200
    with monkeypatch.context() as patch:
        patch.setattr("apps.gateway.pools.look_ups.in_db", None)
        assert (await program.post("/v1/completions", json=body)).status_code == 200
    await server.adelete()
    assert (await program.post("/v1/completions", json=body)).status_code == 404
