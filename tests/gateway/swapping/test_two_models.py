"""Programs on two models of a router that holds one: each works for a while, not by turns."""

import asyncio
import time
from collections.abc import Iterator

import httpx2
import pytest
from asgiref.sync import sync_to_async

from apps.llm.permits import ModelWait, read_model_waits, terms
from apps.servers.models import Server
from apps.servers.services import refresh_server
from tests.backends.model_files import write_models
from tests.backends.relay import Counts, Relay
from tests.backends.stacks.llama_servers import KEY
from tests.backends.stacks.routers import preset_router
from tests.waiting import until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("nobody_stays", "loop_closed"),
]


@pytest.fixture(scope="module")
def relay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    """A real router of the models alpha and beta, and what is asked of it."""
    folder = tmp_path_factory.mktemp("router")
    process, root = preset_router(folder, write_models(folder))
    with process, Relay(int(root.rsplit(":", 1)[1])) as passing:
        yield passing


@pytest.fixture
async def counts(relay: Relay, db: None) -> Counts:
    server = Server(name="Router", base_url=f"http://127.0.0.1:{relay.port}/v1")
    server.set_key(KEY)
    await sync_to_async(server.save)()
    await refresh_server(server)
    return relay.forget()


async def work(program: httpx2.AsyncClient, model: str, lane: str, requests: int) -> None:
    """Ask again and again, as an agent does, which runs a tool after each answer."""
    headers = {"X-Workbench-Lane": lane}
    for number in range(requests):
        messages = [{"role": "user", "content": f"Step {number}"}]
        body = {"model": model, "messages": messages, "max_tokens": 4}
        answer = await program.post("/v1/chat/completions", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        tool = await asyncio.create_subprocess_exec("true")
        await tool.wait()


async def work_together(program: httpx2.AsyncClient, lane: str, requests: int) -> None:
    async with asyncio.timeout(300), asyncio.TaskGroup() as agents:
        for model in ("alpha", "beta"):
            agents.create_task(work(program, model, lane, requests))


@pytest.mark.parametrize("lane", ["agent", "person"])
async def test_two_programs_do_not_swap_their_models_with_each_request(
    program: httpx2.AsyncClient, counts: Counts, lane: str
) -> None:
    await work_together(program, lane, 12)
    assert len(counts.asked) == 24
    assert counts.switches == 1


@pytest.mark.parametrize("lane", ["agent", "person"])
async def test_who_waits_for_a_model_is_seen_once_however_often_it_asks(
    program: httpx2.AsyncClient, counts: Counts, lane: str
) -> None:
    server = await Server.objects.aget()
    working = asyncio.create_task(work_together(program, lane, 6))
    seen: set[ModelWait] = set()

    async def is_done() -> bool:
        seen.update(await read_model_waits(server.pk))
        return working.done()

    await until(is_done, within=300)
    await working
    agents = int(lane == "agent")
    [waiting] = seen
    assert waiting in {ModelWait("alpha", 1, agents), ModelWait("beta", 1, agents)}
    assert await read_model_waits(server.pk) == []


async def test_neither_waits_until_the_other_is_done(
    program: httpx2.AsyncClient, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terms, "MODEL_TURN_SECONDS", 0.5)
    began = time.monotonic()
    await work_together(program, "agent", 80)
    assert len(counts.asked) == 160
    assert 2 <= counts.switches <= (time.monotonic() - began) / 0.5
