"""Questions to a server that request limit is reached for now."""

import pytest
from django.test import AsyncClient

from apps.chat.models import Message, Status
from apps.runtime.async_db import in_db
from apps.servers.models import DefaultServer, Use
from tests.chat.conftest import ask, events_of
from tests.llama_process import LlamaProcess
from tests.servers.conftest import server_at
from tests.standins import Model, Standin
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_question_waits_and_says_why(alice_api: AsyncClient, llama: LlamaProcess) -> None:
    with Standin("olla", llama, models=[Model("m")], refuses=True) as olla:
        server = await in_db(server_at, olla)
        await in_db(DefaultServer.objects.create, use=Use.CHAT, server=server)
        _, answer = await ask(alice_api)

        async def was_refused() -> bool:
            return 429 in [asked["status"] for asked in await in_db(lambda: olla.asked)]

        await until(was_refused)
        await in_db(lambda: olla.change(refuses=False))
        events = await events_of(alice_api, answer, after="0")
        refused = [asked for asked in olla.asked if asked["status"] == 429]
    saved = await Message.objects.aget(pk=answer)
    assert (saved.status, saved.error_detail) == (Status.COMPLETE, "")
    said = [event["reason"] for event in events if event.name == "queued" and "reason" in event]
    assert said
    assert "request limit is reached" in said[0]
    assert "Trying again in" in said[0]
    assert len(refused) < 5


async def test_but_not_for_long(
    alice_api: AsyncClient, llama: LlamaProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.servers.retry.BUSY_SECONDS", 0.5)
    with Standin("olla", llama, models=[Model("m")], rate_per_minute=1, burst=1) as olla:
        server = await in_db(server_at, olla)
        await in_db(DefaultServer.objects.create, use=Use.CHAT, server=server)
        _, answer = await ask(alice_api)
        end = (await events_of(alice_api, answer))[-1]
    assert (end.name, end["code"]) == ("error", "busy")
