"""One member who wants everything: told so with a figure, and others are served as before."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from pytest_django import Settings

from apps.chat.models import Attachment, Conversation, Message, Role, Share, Status
from apps.core import quotas
from apps.core.quotas import KINDS, hold
from apps.mcp import connection, discovery
from apps.mcp.models import ToolServer
from apps.servers.models import Server

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _two(settings: Settings) -> None:
    settings.LIMITS = dict.fromkeys(KINDS, 2)


def waiting_answer(owner: User) -> Message:
    conversation = Conversation.objects.create(owner=owner, title="t")
    question = Message.objects.create(conversation=conversation, role=Role.USER, content="?")
    return Message.objects.create(
        conversation=conversation, parent=question, role=Role.ASSISTANT, status=Status.QUEUED
    )


def ask(client: Client, owner: User) -> Any:
    conversation = Conversation.objects.create(owner=owner, title="t")
    address = f"/api/v1/conversations/{conversation.pk}/messages"
    return client.post(address, {"content": "And?"}, content_type="application/json")


def refused(answer: Any, figure: str) -> None:
    assert answer.status_code == 429
    assert answer.json()["code"] == "too_many"
    assert figure in answer.json()["detail"]


def test_questions(api: Client, alice: User, bobs_api: Client, bob: User, server: Server) -> None:
    answers = [waiting_answer(alice) for _ in range(2)]
    answer = ask(api, alice)
    refused(answer, "You have 2 answers that are being written or wait")
    assert answer["Retry-After"] == "10"
    assert Message.objects.count() == 4  # nothing stays of a question that was refused
    for address in (
        f"/api/v1/answers/{answers[0].pk}/regenerate",
        f"/api/v1/messages/{answers[0].parent_id}/edit",
    ):
        Message.objects.filter(pk=answers[0].pk).update(status=Status.COMPLETE)
        waiting_answer(alice)
        again = api.post(address, {"content": "x"}, content_type="application/json")
        refused(again, "You have 2 answers")
        Message.objects.filter(pk=answers[0].pk).update(status=Status.QUEUED)
    assert ask(bobs_api, bob).status_code == 202


def test_answers_of_a_process_that_ended_do_not_count(
    api: Client, alice: User, server: Server
) -> None:
    left = [waiting_answer(alice) for _ in range(2)]
    Message.objects.filter(pk__in=[one.pk for one in left]).update(created="2020-01-01T00:00Z")
    assert ask(api, alice).status_code == 202
    assert set(Message.objects.filter(pk__in=[one.pk for one in left]).values_list("status")) == {
        (Status.INTERRUPTED,)
    }


def test_streams(api: Client, alice: User, bobs_api: Client, bob: User) -> None:
    answer = waiting_answer(alice)
    address = f"/api/v1/answers/{answer.pk}/events"
    with hold(alice.pk, "streams"), hold(alice.pk, "streams"):
        refused(api.get(address), "You have 2 streams of events open")
        assert bobs_api.get(f"/api/v1/answers/{waiting_answer(bob).pk}/events").status_code == 200
    assert api.get(address).status_code == 200
    gc.collect()  # the test client's answers know each other
    assert not quotas.held()  # responses that nobody reads hold nothing


def test_files(api: Client, alice: User) -> None:
    def attach() -> Any:
        return api.post("/api/v1/attachments", {"file": BytesIO(b"text")})

    with hold(alice.pk, "readings"), hold(alice.pk, "readings"):
        refused(attach(), "You have 2 files that are being read")
        refused(api.post("/api/v1/datasets", {"file": BytesIO(b"text\na")}), "2 files")
    assert [attach().status_code for _ in range(2)] == [201, 201]
    refused(attach(), "You have 2 attachments that were not sent")
    assert Attachment.objects.count() == 2


def test_keys_and_shares(api: Client, browser: Client, alice: User) -> None:
    conversation = waiting_answer(alice).conversation
    Message.objects.update(content="said")
    conversation.active_leaf = Message.objects.last()
    conversation.save()
    share = f"/api/v1/conversations/{conversation.pk}/shares"
    assert [api.post(share).status_code for _ in range(2)] == [201, 201]
    refused(api.post(share), "You have 2 shared copies")
    assert Share.objects.count() == 2
    assert browser.post("/settings/keys/", {"name": "b"}).status_code == 200
    page = browser.post("/settings/keys/", {"name": "c"})
    assert page.status_code == 429
    assert "You have 2 API keys" in page.content.decode()


@asynccontextmanager
async def silent_server() -> AsyncIterator[str]:
    """The address of a server that takes connections and says nothing."""
    taken: list[asyncio.StreamWriter] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken.append(writer)
        await reader.read()  # until the other side has gone

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()
        for writer in taken:
            writer.transport.abort()
        await server.wait_closed()
        await asyncio.sleep(0)  # one turn of the loop, in which the sockets are closed


async def test_tool_servers_that_hang(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with silent_server() as url:
        monkeypatch.setattr(connection.settings, "MCP_OWN_PRIVATE_URLS", True, raising=False)
        client, other = AsyncClient(), AsyncClient()
        await client.aforce_login(alice)
        await other.aforce_login(bob)
        servers = [
            await ToolServer.objects.acreate(name=f"S{n}", slug=f"s{n}", url=url, owner=alice)
            for n in range(6)
        ]
        looks = [asyncio.create_task(client.post(f"/tools/{one.pk}/look/")) for one in servers]
        done, hanging = await asyncio.wait(looks, return_when=asyncio.FIRST_COMPLETED)
        while len(done) < 4:
            more, hanging = await asyncio.wait(hanging, return_when=asyncio.FIRST_COMPLETED)
            done |= more
        assert {task.result().status_code for task in done} == {429}
        assert (await other.get("/tools/")).status_code == 200
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)


async def test_refresh_of_a_silent_tool_server_has_one_deadline(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "REFRESH_SECONDS", 0.1)
    async with silent_server() as url:
        server = await discovery.refresh_tools(
            await ToolServer.objects.acreate(name="S", slug="s", url=url)
        )
    assert server.error == "The tool server did not list its tools within 0 seconds."
