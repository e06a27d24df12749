"""Questions to a model that is not loaded yet wait for it, and say so."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from django.test import AsyncClient

from apps.chat.models import Message, Status
from apps.runtime.async_db import in_db
from apps.runtime.download_progress import DownloadProgress, progress_file, write_progress
from apps.servers.models import DefaultServer, Server, Use
from apps.servers.services import refresh_server
from tests.chat.conftest import Event, ask, events_of, read_events, text_of
from tests.chat.tools.tool_server import ToolServer, create_tool_server, say
from tests.conftest import create_server
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
    with Standin("router", llama, models=[Model("big")], load_seconds=600) as router:
        server = await in_db(Server.objects.create, name="Router", base_url=router.base_url)
        await in_db(DefaultServer.objects.create, use=Use.CHAT, server=server, model="big")
        await refresh_server(server)
        _, answer = await ask(alice_api)
        told = []
        path = f"/api/v1/answers/{answer}/events?after=0"
        async for event in read_events(await alice_api.get(path)):
            if event.name == "loading":
                told.append(event)
                if len(told) == 3:
                    await in_db(lambda: router.change(load_seconds=0))
        assert (await Message.objects.aget(pk=answer)).status == Status.COMPLETE
        shares = [event["share"] for event in told if event]
        assert len(shares) > 1
        assert shares == sorted(shares)
        assert shares[-1] <= 1
        _, answer = await ask(alice_api)
        names = {event.name for event in await events_of(alice_api, answer)}
        assert "loading" not in names


@pytest.fixture
def embedded(tiny_model: Path, tmp_path: Path, settings: Any) -> LlamaProcess:
    """The process that `make run` will start once its model has been downloaded."""
    settings.DATA_DIR = tmp_path
    process = LlamaProcess(tiny_model)
    server = Server(name="Chat server", base_url=process.base_url, from_settings=True)
    server.set_key(process.api_key)
    server.save()
    DefaultServer.objects.create(use=Use.CHAT, server=server)
    tell(process, tmp_path, done=40, total=100)
    return process


def tell(process: LlamaProcess, data: Path, **progress: Any) -> None:
    told = DownloadProgress(model="alice/models:m.gguf", **progress)
    write_progress(progress_file(data, process.port), told)


async def test_a_model_that_is_being_downloaded_is_waited_for(
    alice_api: AsyncClient, embedded: LlamaProcess, tmp_path: Path
) -> None:
    _, answer = await ask(alice_api)
    events = read_events(await alice_api.get(f"/api/v1/answers/{answer}/events"))
    (*_, told) = [event async for event in until(events, "loading")]
    assert told == {
        "reason": "Downloading alice/models:m.gguf: 40% (0.0 of 0.0 MB).",
        "share": 0.4,
    }
    tell(embedded, tmp_path, done=100, total=100, started_at=time.time())
    (*_, told) = [event async for event in until(events, "loading")]
    assert told == {"reason": "Starting alice/models:m.gguf."}
    try:
        await asyncio.to_thread(embedded.start)
        assert [event async for event in events][-1].name == "done"
    finally:
        embedded.kill()
    assert (await Message.objects.aget(pk=answer)).status == Status.COMPLETE


async def test_a_failed_download_ends_the_wait_with_its_reason(
    alice_api: AsyncClient, embedded: LlamaProcess, tmp_path: Path
) -> None:
    _, answer = await ask(alice_api)
    events = read_events(await alice_api.get(f"/api/v1/answers/{answer}/events"))
    assert [event async for event in until(events, "loading")]
    tell(embedded, tmp_path, error="The repository alice/models has no file m.gguf.")
    last = [event async for event in events][-1]
    assert (last["code"], last["detail"]) == (
        "unreachable",
        "The repository alice/models has no file m.gguf.",
    )


async def test_the_fallback_answers_during_a_download(
    alice_api: AsyncClient, embedded: LlamaProcess, llama: LlamaProcess
) -> None:
    other = await in_db(create_server, llama, "Small box")
    await DefaultServer.objects.aupdate(fallback=other)
    _, answer = await ask(alice_api)
    assert text_of(await events_of(alice_api, answer))
    saved = await Message.objects.aget(pk=answer)
    assert "This answer came from “Small box”." in saved.fallback_note
