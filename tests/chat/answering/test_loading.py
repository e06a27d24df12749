"""Questions to a model that is not loaded yet wait for it, and say so."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from django.test import AsyncClient

from apps.chat.models import Message, Status
from apps.runtime.async_db import in_db
from apps.servers.models import DefaultServer, Server, Use
from apps.servers.services import refresh_server
from tests.chat.conftest import Event, ask, events_of, read_events, text_of
from tests.chat.tools.tool_server import ToolServer, create_tool_server, say
from tests.llama_process import LlamaProcess
from tests.standins import Model, Standin

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_server_that_is_starting(
    alice_api: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.servers.retry.LOADING_RETRY_SECONDS", 0.05)
    with ToolServer([say("Good morning")], loads=2) as process:
        await in_db(create_tool_server, process)
        _, answer = await ask(alice_api)
        events = await events_of(alice_api, answer)
    saved = await Message.objects.aget(pk=answer)
    assert saved.status == Status.COMPLETE
    assert saved.content == text_of(events) == "Goodmorning"
    assert saved.ttft_ms is not None


async def test_answer_fails_when_the_model_loads_for_too_long(
    alice_api: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.servers.retry.LOAD_SECONDS", 0.0)
    with ToolServer([say("Never")], loads=99) as process:
        await in_db(create_tool_server, process)
        _, answer = await ask(alice_api)
        await events_of(alice_api, answer)
    saved = await Message.objects.aget(pk=answer)
    assert (saved.status, saved.error_code) == (Status.FAILED, "loading")


async def asked_of_a_dead_server(alice_api: AsyncClient, process: LlamaProcess) -> int:
    """The answer to a question asked right after the server died, of which nobody knows yet."""
    server = Server(name="Crashing", base_url=process.base_url)
    server.set_key(process.api_key)
    await in_db(server.save)
    await in_db(DefaultServer.objects.create, use=Use.CHAT, server=server)
    await refresh_server(server)
    process.kill()
    _, answer = await ask(alice_api)
    return answer


async def test_a_server_that_is_started_again_is_waited_for(
    alice_api: AsyncClient, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.servers.retry.RESTART_SECONDS", 120.0)
    with LlamaProcess(tiny_model) as process:
        answer = await asked_of_a_dead_server(alice_api, process)
        response = await alice_api.get(f"/api/v1/answers/{answer}/events")
        events = read_events(response)
        told = [event async for event in until(events, "queued")]
        assert "Trying again" in told[-1]["reason"]
        await asyncio.to_thread(process.start)
        assert [event async for event in events][-1].name == "done"
    assert (await Message.objects.aget(pk=answer)).status == Status.COMPLETE


async def test_but_not_for_long(
    alice_api: AsyncClient, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.servers.retry.RESTART_SECONDS", 0.0)
    with LlamaProcess(tiny_model) as process:
        answer = await asked_of_a_dead_server(alice_api, process)
        assert (await events_of(alice_api, answer))[-1]["code"] == "unreachable"


async def until(events: AsyncIterator[Event], name: str) -> AsyncIterator[Event]:
    async for event in events:
        yield event
        if event.name == name:
            return


async def test_a_router_says_how_far_it_is(alice_api: AsyncClient, llama: LlamaProcess) -> None:
    with Standin("router", llama, models=[Model("big")], load_seconds=0.4) as router:
        server = await in_db(Server.objects.create, name="Router", base_url=router.base_url)
        await in_db(DefaultServer.objects.create, use=Use.CHAT, server=server, model="big")
        await refresh_server(server)
        _, answer = await ask(alice_api)
        told = [event for event in await events_of(alice_api, answer) if event.name == "loading"]
        assert (await Message.objects.aget(pk=answer)).status == Status.COMPLETE
        shares = [event["share"] for event in told if event]
        assert len(shares) > 1
        assert shares == sorted(shares)
        assert shares[-1] <= 1
        _, answer = await ask(alice_api)
        names = {event.name for event in await events_of(alice_api, answer)}
        assert "loading" not in names
