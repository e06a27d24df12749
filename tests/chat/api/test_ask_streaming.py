"""A question that is answered with the events themselves: POST with `Accept: text/event-stream`."""

import asyncio
import threading
from contextlib import aclosing
from typing import Any

import psutil
import pytest
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import User
from django.core.asgi import get_asgi_application
from django.test import AsyncClient

from apps.chat.api.answers import MessageOut
from apps.chat.models import Conversation, Message
from apps.core.models import ApiKey
from apps.llm.client import Client
from apps.runtime.threads.thread_pool import RequestThreadPool
from apps.runtime.threads.thread_pool_middleware import ThreadPoolMiddleware
from apps.servers.models import Server
from apps.servers.probing.discovery import fetch_slots
from apps.servers.services import choose_target
from tests.chat.conftest import Event, ask, events_of, read_events, text_of
from tests.llama_process import LlamaProcess
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


async def open_conversation(client: AsyncClient) -> int:
    opened = await client.post("/api/v1/conversations", {}, content_type="application/json")
    pk: int = opened.json()["id"]
    return pk


async def ask_streaming(client: AsyncClient, conversation: int, content: str, tokens: int) -> Any:
    return await client.post(
        f"/api/v1/conversations/{conversation}/messages",
        {"content": content, "params": {"max_tokens": tokens}},
        content_type="application/json",
        headers={"accept": "text/event-stream"},
    )


async def test_ask_streaming_sends_the_turn_then_its_events(
    alice_api: AsyncClient, server: Server
) -> None:
    conversation = await open_conversation(alice_api)
    response = await ask_streaming(alice_api, conversation, "Hello", 30)
    assert (response.status_code, response["Content-Type"]) == (200, "text/event-stream")
    turn, *events = [event async for event in read_events(response)]
    assert turn.name == "turn"
    assert turn["question"]["content"] == "Hello"
    assert turn["question"].keys() == MessageOut.model_fields.keys()
    assert turn["events"] == f"/api/v1/answers/{turn['answer']['id']}/events"
    assert events[0].name == "snapshot"
    assert [event.name for event in events][-2:] == ["usage", "done"]
    saved = await Message.objects.aget(pk=turn["answer"]["id"])
    assert text_of(events) == saved.content
    assert saved.completion_tokens == 30


async def test_the_turn_comes_in_one_piece_with_its_first_events(
    alice_api: AsyncClient, server: Server
) -> None:
    response = await ask_streaming(alice_api, await open_conversation(alice_api), "Hello", 5)
    first, *_ = [piece async for piece in response.streaming_content]
    names = [line for line in first.split(b"\n") if line.startswith(b"event:")]
    assert names[:2] == [b"event: turn", b"event: snapshot"]


async def test_broken_stream_resumes_at_the_events_route(
    alice_api: AsyncClient, server: Server, llama: LlamaProcess
) -> None:
    conversation = await open_conversation(alice_api)
    seen: list[Event] = []
    with llama.slowed():
        response = await ask_streaming(alice_api, conversation, "Hello", 600)
        async with aclosing(read_events(response)) as reader:
            async for event in reader:
                seen.append(event)
                if event.name == "token":
                    break
    resumed = await events_of(alice_api, seen[0]["answer"]["id"], after=seen[-1].id)
    assert resumed[0].name != "snapshot"
    saved = await Message.objects.aget(pk=seen[0]["answer"]["id"])
    assert saved.completion_tokens == 600
    assert text_of(seen + resumed) == saved.content


async def test_errors_stay_json(
    alice_api: AsyncClient, bob_api: AsyncClient, server: Server
) -> None:
    conversation = await open_conversation(alice_api)
    refused = await ask_streaming(alice_api, conversation, "  ", 5)
    assert (refused.status_code, refused.json()["code"]) == (422, "empty_message")
    assert (await ask_streaming(bob_api, conversation, "Hello", 5)).status_code == 404


async def slots_are_idle(client: Client) -> bool:
    return not any(slot["is_processing"] for slot in await fetch_slots(client) or [])


async def test_stop_frees_the_slot_at_once(
    alice_api: AsyncClient, server: Server, slow_llama: None
) -> None:
    client = choose_target(server).client
    _, answer = await ask(alice_api, max_tokens=4000)
    async for event in read_events(await alice_api.get(f"/api/v1/answers/{answer}/events")):
        if event.name == "token":
            break
    stopping = asyncio.create_task(alice_api.post(f"/api/v1/answers/{answer}/stop"))
    await until(lambda: slots_are_idle(client))
    assert (await stopping).json()["status"] == "stopped"


async def test_open_streams_hold_no_thread_and_no_connection(alice: User, server: Server) -> None:
    """A hundred readers of one unfinished answer, through the application as it is served."""
    _, token = await asyncio.to_thread(lambda: ApiKey.issue(user=alice, name="tests"))
    application = ThreadPoolMiddleware(get_asgi_application(), RequestThreadPool(min_threads=2))
    conversation = await Conversation.objects.acreate(owner=alice)
    answer = await Message.objects.acreate(
        conversation=conversation, role="assistant", status="queued"
    )
    path = f"/api/v1/answers/{answer.pk}/events"
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode())],
    }
    threads, connections = threading.active_count(), open_databases()
    streams = []
    for _ in range(100):
        stream = ApplicationCommunicator(application, dict(scope))
        await stream.send_input({"type": "http.request", "body": b"", "more_body": False})
        start = await stream.receive_output(60)
        assert start["status"] == 200
        await stream.receive_output(60)
        streams.append(stream)
    assert threading.active_count() <= threads + 3
    assert open_databases() <= connections + 3
    for stream in streams:
        await stream.send_input({"type": "http.disconnect"})
        await stream.wait(60)


def open_databases() -> int:
    """How often an SQLite file is open here (PostgreSQL's connections are in its pool)."""
    return sum("sqlite3" in file.path for file in psutil.Process().open_files())
