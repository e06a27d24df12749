"""Questions to a model that is not in memory yet wait for it, and say so."""

import pytest
from django.test import AsyncClient

from apps.chat.models import Message, Status
from apps.core.db import in_db
from apps.llm.models import DefaultServer, Server, Use
from apps.llm.services import look_at
from tests.chat.conftest import ask, events_of, text_of
from tests.chat.tool_server import ToolServer, create_tool_server, say
from tests.llama_process import LlamaProcess
from tests.standins import Model, Standin

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_server_that_is_starting(
    alice_api: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.chat.writing.LOADING_AGAIN_SECONDS", 0.05)
    with ToolServer([say("Good morning")], loads=2) as process:
        await in_db(create_tool_server, process)
        _, answer = await ask(alice_api)
        events = await events_of(alice_api, answer)
    saved = await Message.objects.aget(pk=answer)
    assert saved.status == Status.COMPLETE
    assert saved.content == text_of(events) == "Goodmorning"
    assert saved.ttft_ms is not None


async def test_it_does_not_wait_for_ever(
    alice_api: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.llm.services.LOAD_SECONDS", 0.0)
    with ToolServer([say("Never")], loads=99) as process:
        await in_db(create_tool_server, process)
        _, answer = await ask(alice_api)
        await events_of(alice_api, answer)
    saved = await Message.objects.aget(pk=answer)
    assert (saved.status, saved.error_code) == (Status.FAILED, "loading")


async def test_a_router_says_how_far_it_is(alice_api: AsyncClient, llama: LlamaProcess) -> None:
    with Standin("router", llama, models=[Model("big")], load_seconds=0.4) as router:
        server = await in_db(Server.objects.create, name="Router", base_url=router.base_url)
        await in_db(DefaultServer.objects.create, use=Use.CHAT, server=server, model="big")
        await look_at(server)
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
