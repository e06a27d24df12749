"""How long an answer may be, and why it ended."""

import asyncio
import json
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from apps.chat.answering.outcome import Outcome
from apps.chat.models import Message
from apps.llm.events import Usage
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.services import choose_target, refresh_server
from tests.chat.conftest import ask, events_of, read_events, told
from tests.chat.tools.tool_server import Delta, ToolServer, create_tool_server, say, think

pytestmark = pytest.mark.django_db(transaction=True)


async def _asked(client: AsyncClient, question: str) -> None:
    opened = await client.post("/api/v1/conversations", {}, content_type="application/json")
    sent = await client.post(
        f"/api/v1/conversations/{opened.json()['id']}/messages",
        {"content": question},
        content_type="application/json",
    )
    await events_of(client, sent.json()["answer"]["id"])


async def _facts(server: Server, kind: str, **known: object) -> None:
    server.kind = kind
    server.stored_facts = {**server.stored_facts, **known}
    await in_db(server.save)


async def test_a_long_question_leaves_the_answer_its_room(
    alice_api: AsyncClient, caller: ToolServer, caller_server: Server
) -> None:
    await _facts(caller_server, "llama-server", context=8192, slots=2, kv_unified=False)
    await _asked(alice_api, "word " * 5200)  # the estimate fills the slot; the server knows better
    assert caller.asked[-1]["max_tokens"] == 8192


async def test_other_servers_are_sent_no_limit_that_nobody_set(
    alice_api: AsyncClient, caller: ToolServer, caller_server: Server
) -> None:
    await _facts(caller_server, "openai", context=8192)
    await _asked(alice_api, "Hello")
    assert "max_tokens" not in caller.asked[-1]
    _, answer = await ask(alice_api, "Hello", max_tokens=7000)
    await events_of(alice_api, answer)
    assert caller.asked[-1]["max_tokens"] == 7000
    saved = await Message.objects.aget(pk=answer)
    assert saved.max_tokens == 7000


@dataclass
class Overflowing(ToolServer):
    """Its first answer breaks off once it was seen; the rest ends at the limit that was sent."""

    seen: threading.Event = field(default_factory=threading.Event)

    async def _stream(self, deltas: list[Delta], send: Any, receive: Any) -> None:
        async def chunk(data: Any) -> None:
            line = b"data: " + json.dumps(data).encode() + b"\n\n"
            await send({"type": "http.response.body", "body": line, "more_body": True})

        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for delta in deltas:
            await chunk({"id": "x", "choices": [{"index": 0, "delta": delta}]})
        if len(self.asked) == 1:
            await asyncio.to_thread(self.seen.wait, 10)
            words = "Context size has been exceeded."
            await chunk({"error": {"code": 500, "type": "server_error", "message": words}})
        else:
            ended = {"index": 0, "delta": {}, "finish_reason": "length"}
            await chunk({"id": "x", "choices": [ended]})
            usage = {"prompt_tokens": 104, "completion_tokens": len(deltas)}
            await chunk({"id": "x", "choices": [], "usage": usage})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


async def test_an_answer_of_two_requests_ends_at_the_limit_it_was_given(
    alice_api: AsyncClient,
) -> None:
    process = Overflowing([think("Hm.") + say("one two three"), say("four five six")])
    with process:
        server = await in_db(create_tool_server, process)
        await _facts(server, "llama-server")
        _, answer = await ask(alice_api, max_tokens=7)
        response = await alice_api.get(f"/api/v1/answers/{answer}/events")
        text = ""
        async for event in read_events(response):
            text += event.get("text", "")
            if text.endswith("three"):
                process.seen.set()
    assert [asked["max_tokens"] for asked in process.asked[:2]] == [7, 3]
    saved = await Message.objects.aget(pk=answer)
    assert (saved.max_tokens, saved.completion_tokens, saved.prompt_tokens) == (7, 7, 101)
    assert saved.length_limit == "Stopped at max tokens (7)"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"max_tokens": 300, "completion_tokens": 300}, "Stopped at max tokens (300)"),
        (
            {"max_tokens": 4096, "completion_tokens": 96, "prompt_tokens": 4000},
            "Stopped: the context is full (4,096 tokens)",
        ),
        ({"completion_tokens": 300}, "Stopped: max tokens reached"),
        ({"max_tokens": 300}, "Stopped: max tokens reached"),
    ],
)
def test_the_footer_says_which_limit_it_was(
    alice: User, client: Client, caller_server: Server, fields: dict[str, int], words: str
) -> None:
    conversation = told(alice, "Hello", "Yes, and", finish_reason="length", **fields)
    client.force_login(alice)
    assert words in client.get(f"/chat/{conversation.pk}/").content.decode()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"reasoning": "Hm.", "finish_reason": "thinking"},
            "The model spent all its tokens thinking and wrote no answer.",
        ),
        (
            {"reasoning": "Hm.", "finish_reason": "stop"},
            "The model ended after its thinking and wrote no answer.",
        ),
        ({"finish_reason": "stop"}, "The answer is empty: the model ended it at once."),
    ],
)
def test_an_empty_answer_says_so(
    alice: User, client: Client, caller_server: Server, fields: dict[str, str], words: str
) -> None:
    conversation = told(alice, "Hello", "", completion_tokens=0, **fields)
    client.force_login(alice)
    page = client.get(f"/chat/{conversation.pk}/").content.decode()
    assert words in page
    assert "0 tokens" not in page


def test_the_panel_says_what_holds_where_nothing_is_set(
    alice: User, client: Client, caller_server: Server
) -> None:
    conversation = told(alice, "Hello", "Yes.")
    client.force_login(alice)
    for kind, words in (("llama-server", "up to 4,096"), ("openai", "Server default")):
        Server.objects.update(
            kind=kind, stored_facts={**caller_server.stored_facts, "context": 4096}
        )
        panel = client.get(f"/chat/{conversation.pk}/settings/").content.decode()
        field = panel.partition('name="max_tokens"')[2].partition(">")[0]
        assert f'placeholder="{words}"' in field


def test_a_cache_that_is_not_reported_is_not_zero(
    alice: User, client: Client, caller_server: Server
) -> None:
    conversation = told(alice, "Hello", "Yes.", prompt_tokens=300, completion_tokens=5)
    client.force_login(alice)
    page = client.get(f"/chat/{conversation.pk}/").content.decode()
    assert "does not report what came from its cache" in page
    assert "0 %" not in page
    assert "0%" not in page
    unreported = Usage(300, 0, 5, tells_cached=False)
    assert Outcome(usage=unreported).uncached_tokens == 0


def test_an_answer_that_is_all_thought_offers_one_without(
    alice: User, client: Client, caller_server: Server
) -> None:
    conversation = told(
        alice, "Hello", "", reasoning="Hm.", finish_reason="thinking", completion_tokens=300
    )
    client.force_login(alice)
    page = client.get(f"/chat/{conversation.pk}/").content.decode()
    assert "spent all 300 tokens thinking" in page
    assert "Retry without thinking" in page


async def test_another_answer_with_a_setting_of_its_own(
    alice_api: AsyncClient, caller: ToolServer, caller_server: Server
) -> None:
    _, answer = await ask(alice_api, "Hello")
    await events_of(alice_api, answer)
    again = await alice_api.post(f"/api/v1/answers/{answer}/regenerate?thinking=off")
    await events_of(alice_api, again.json()["answer"]["id"])
    assert caller.asked[-1]["reasoning_effort"] == "none"
    assert "thinking" not in caller.asked[-1]
    refused = await alice_api.post(f"/api/v1/answers/{answer}/regenerate?thinking=much")
    assert refused.status_code == 422


async def test_a_limit_is_of_the_answer_and_a_thought_comes_on_top(
    alice_api: AsyncClient,
) -> None:
    with ToolServer([think("One. Two. Three.") + say("one two three four five")]) as process:
        server = await in_db(create_tool_server, process)
        models = [{"id": "default", "state": "loaded", "reasoning": True}]
        await _facts(server, "llama-server", models=models)
        _, answer = await ask(alice_api, max_tokens=2)
        await events_of(alice_api, answer)
    sent = process.asked[0]
    assert sent["max_tokens"] == 2 + sent["reasoning_budget_tokens"]
    saved = await Message.objects.aget(pk=answer)
    assert (saved.content, saved.finish_reason) == ("onetwo", "length")
    assert saved.reasoning_tokens


async def test_a_prompt_that_leaves_no_room_is_too_long(
    alice_api: AsyncClient, server: Server
) -> None:
    """However the estimate was: an answer of two tokens is none."""
    server = await refresh_server(server)
    client, context = choose_target(server).client, server.context_of("")
    assert context
    around = await client.count_tokens("", [{"role": "user", "content": "x" * 100}])
    assert around
    _, answer = await ask(alice_api, "x" * (100 + context - around - 3), max_tokens=50)
    end = (await events_of(alice_api, answer))[-1]
    assert end["code"] == "prompt_too_long"
    assert (
        f"of the {context:,} tokens per slot, which leaves no room for an answer" in end["detail"]
    )
