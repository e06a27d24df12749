"""Async clients, and a model server that calls what a test tells it to.

An answer is written in the event loop that began it.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any

import pytest
from asgiref.sync import ThreadSensitiveContext
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.utils import timezone

from apps.chat.conversations import services
from apps.chat.models import CallState, Conversation, Message, Role
from apps.core.models import ApiKey
from apps.llm.client import close_clients
from apps.runtime.redis import close_async_redis
from apps.servers.models import DefaultServer, Server, State, Use
from tests.chat.tools.tool_server import ToolServer, call, create_tool_server, say

CALCULATE = call(0, "call_a", "calculator", '{"expression": "6 * 7"}')


@pytest.fixture(autouse=True)
async def _connections(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr("apps.chat.answering.runner.LINGER_SECONDS", 0)  # longer than a test's loop
    yield
    await close_clients()
    await close_async_redis()


class Browser(AsyncClient):
    """Gives each request a thread of its own, as Django's ASGI handler does."""

    async def request(self, **request: Any) -> Any:
        async with ThreadSensitiveContext():
            return await super().request(**request)


class Program(Browser):
    """Sends a key with every request (AsyncClient loses the headers it is made with)."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def generic(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["headers"] = {"authorization": f"Bearer {self._token}", **(kwargs["headers"] or {})}
        return super().generic(*args, **kwargs)


def program_of(user: User) -> AsyncClient:
    _, token = ApiKey.issue(user=user, name="tests")
    return Program(token)


@pytest.fixture
def alice_api(alice: User) -> AsyncClient:
    return program_of(alice)


@pytest.fixture
def bob_api(bob: User) -> AsyncClient:
    return program_of(bob)


@pytest.fixture
def alice_browser(alice: User) -> AsyncClient:
    client = Browser()
    client.force_login(alice)
    return client


class Event(dict[str, Any]):
    """What an event's data says; `id` and `name` beside it."""

    id: str
    name: str


async def read_events(response: Any) -> AsyncGenerator[Event, None]:
    """The events of a streaming response, as a browser would take them apart."""
    rest = ""
    async for chunk in response.streaming_content:
        *blocks, rest = (rest + chunk.decode()).split("\n\n")
        for block in blocks:
            fields = dict(line.split(": ", 1) for line in block.split("\n") if line[0] != ":")
            if "data" in fields:
                event = Event(json.loads(fields["data"]))
                event.id, event.name = fields["id"], fields["event"]
                yield event


async def events_of(client: AsyncClient, answer: int, after: str | None = None) -> list[Event]:
    """All events of an answer until its end."""
    query = f"?after={after}" if after is not None else ""
    response = await client.get(f"/api/v1/answers/{answer}/events{query}")
    assert response.status_code == 200, response.content
    return [event async for event in read_events(response)]


def text_of(events: list[Event]) -> str:
    """What a reader has on his screen after these events."""
    text = ""
    for event in events:
        if event.name == "snapshot":
            text = event["text"]
        elif event.name == "token":
            text += event["text"]
    return text


async def ask(
    client: AsyncClient, content: str = "Hello", *, max_tokens: int = 20, **conversation: Any
) -> tuple[int, int]:
    """A new conversation with one question; its id and the answer's."""
    opened = await client.post(
        "/api/v1/conversations", conversation, content_type="application/json"
    )
    assert opened.status_code == 201, opened.content
    return opened.json()["id"], await ask_in(
        client, opened.json()["id"], content, max_tokens=max_tokens
    )


async def ask_in(
    client: AsyncClient, conversation: int, content: str = "Hello", *, max_tokens: int = 20
) -> int:
    response = await client.post(
        f"/api/v1/conversations/{conversation}/messages",
        {"content": content, "params": {"max_tokens": max_tokens}},
        content_type="application/json",
    )
    assert response.status_code == 202, response.content
    answer: int = response.json()["answer"]["id"]
    return answer


@pytest.fixture
def demo_server(db: None) -> Server:
    facts = {"models": [{"id": "workbench-demo"}], "slots": 4, "context": 2048}
    server = Server.objects.create(
        name="Demo", base_url="http://127.0.0.1:9/v1", state=State.READY, stored_facts=facts,
        from_settings=True, checked_at=timezone.now(),
    )  # fmt: skip
    DefaultServer.objects.create(use=Use.CHAT, server=server)
    return server


def told(owner: User, *texts: str, **last: object) -> Conversation:
    """A conversation of these messages, questions and answers in turn."""
    conversation = services.open_conversation(owner=owner, title="Kettles")
    message = None
    for number, text in enumerate(texts):
        role = Role.ASSISTANT if number % 2 else Role.USER
        fields = last if number == len(texts) - 1 else {}
        message = Message.objects.create(
            conversation=conversation, parent=message, role=role, content=text, **fields
        )
    conversation.active_leaf = message
    conversation.save(update_fields=["active_leaf"])
    return conversation


@pytest.fixture
def caller() -> Iterator[ToolServer]:
    """A model server that says what a test has put into its script."""
    with ToolServer([say("Hello there")]) as running:
        yield running


@pytest.fixture
def caller_server(db: None, caller: ToolServer) -> Server:
    return create_tool_server(caller)


async def open_with(client: AsyncClient, *, rounds: int | None = None, **use: str) -> int:
    opened = await client.post("/api/v1/conversations", {}, content_type="application/json")
    pk: int = opened.json()["id"]
    given: dict[str, Any] = {"use": use}
    if rounds:
        given["rounds"] = rounds
    changed = await client.patch(
        f"/api/v1/conversations/{pk}", {"tools": given}, content_type="application/json"
    )
    assert changed.status_code == 200, changed.content
    return pk


def calls_in(events: list[Event]) -> list[dict[str, Any]]:
    """What a reader knows of the calls after these events, whenever he began to read."""
    calls: dict[int, dict[str, Any]] = {}
    for event in events:
        if event.name == "snapshot":
            calls = {call["id"]: call for call in event.get("calls", ())}
        elif event.name in {"tool_call", "tool_result"}:
            calls[event["id"]] = dict(event)
    return list(calls.values())


async def answer_of(client: AsyncClient, pk: int) -> Any:
    return (await client.get(f"/api/v1/answers/{pk}")).json()


async def until_waiting(
    client: AsyncClient, answer: int, state: CallState = CallState.WAITING
) -> list[int]:
    """The calls that wait, as a page that follows the answer learns of them."""
    async for event in read_events(await client.get(f"/api/v1/answers/{answer}/events")):
        if event.name == "tool_call" and event["state"] == state:
            return [event["id"]]
        calls = event.get("calls", ()) if event.name == "snapshot" else ()
        if waiting := [one["id"] for one in calls if one["state"] == state]:
            return waiting
    raise AssertionError("nothing waits")
