"""Chat and jobs with a server that refuses all that OpenAI does not know, and no setting for it."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from apps.batch.models import Item, ItemStatus
from apps.batch.pump.pump import run_pump
from apps.chat.models import Message, Status
from apps.runtime.async_db import in_db
from apps.servers.models import DefaultServer, Server, Use
from tests.chat.conftest import ask, events_of, program_of, text_of
from tests.generation.conftest import new_job
from tests.llama_process import LlamaProcess
from tests.servers.conftest import server_at
from tests.standins import Standin

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("loop_closed")]


@pytest.fixture(scope="module")
def strict(llama: LlamaProcess) -> Iterator[Standin]:
    with Standin("strict", llama) as standin:
        yield standin


@pytest.fixture
def server(db: None, strict: Standin) -> Server:
    server = server_at(strict)
    for use in (Use.CHAT, Use.GENERATION):
        DefaultServer.objects.create(use=use, server=server)
    return server


@pytest.fixture
def alice_api(alice: User, monkeypatch: pytest.MonkeyPatch) -> AsyncClient:
    monkeypatch.setattr("apps.chat.answering.runner.LINGER_SECONDS", 0)
    return program_of(alice)


async def test_chat(alice_api: AsyncClient, server: Server) -> None:
    _, answer = await ask(alice_api, max_tokens=8)
    events = await events_of(alice_api, answer)
    saved = await Message.objects.aget(pk=answer)
    assert (saved.status, saved.error_detail) == (Status.COMPLETE, "")
    assert text_of(events) == saved.content != ""


async def test_a_job(alice: User, server: Server, strict: Standin) -> None:
    before = len(strict.asked)
    job = await in_db(lambda: new_job(alice, server, rows=3, params={"max_tokens": 60}))
    await run_pump(server.pk)
    rows = [item async for item in Item.objects.filter(batch=job.batch_id)]
    assert all(row.status in {ItemStatus.ACCEPTED, ItemStatus.REJECTED} for row in rows), [
        row.reason for row in rows
    ]
    answers = [asked for asked in strict.asked[before:] if "chat" in asked["path"]]
    refused = [asked for asked in answers if asked["status"] == 400]
    assert len(refused) <= 3  # at most once for each row that was in flight, and never again
    assert all("max_tokens" in asked["fields"] for asked in refused)
