"""“Answer now”: a running answer ends its thought, on a real llama.cpp and on other servers."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from django.urls import reverse

from apps.chat.answering import runner
from apps.chat.models import Conversation, Message, Status
from apps.chat.prompt import build
from apps.chat.prompt.prepare import prepare
from apps.chat.streaming import runner_registry
from apps.runtime.async_db import in_db
from apps.servers.models import Server, Use
from apps.servers.services import refresh_server
from tests.chat.conftest import ask, events_of, read_events
from tests.chat.tools.tool_server import ToolServer, create_tool_server, say, think
from tests.conftest import create_server
from tests.environment import FOLDER
from tests.llama_process import LlamaProcess
from tests.llm.thinking_templates import DEEPSEEK_R1, QWEN
from tests.tiny_gguf import write_tiny_gguf

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module", params=["qwen", "deepseek-r1"])
def thinking_process(request: pytest.FixtureRequest) -> Iterator[LlamaProcess]:
    template = {"qwen": QWEN, "deepseek-r1": DEEPSEEK_R1}[request.param]
    model = write_tiny_gguf(FOLDER / f"now-{request.param}.gguf", template=template)
    with LlamaProcess(model, parallel=2, context_per_slot=4096) as process:
        yield process


@pytest.fixture
async def thinker(thinking_process: LlamaProcess) -> AsyncIterator[Server]:
    server = await sync_to_async(create_server)(thinking_process, "Thinker", Use.CHAT)
    yield await refresh_server(server)
    await asyncio.to_thread(thinking_process.wait_until_idle)


async def until_it_thinks(client: AsyncClient, answer: int) -> None:
    response = await client.get(f"/api/v1/answers/{answer}/events")
    reader = read_events(response)
    async for event in reader:
        if event.name == "reasoning" or event.get("reasoning"):
            break
    await reader.aclose()  # type: ignore[attr-defined]


@dataclass
class Pondering(ToolServer):
    """Thinks, and after a while waits until a person has had enough."""

    was_asked: threading.Event = field(default_factory=threading.Event)

    async def before(self, number: int) -> None:
        if number == 3:
            await asyncio.to_thread(self.was_asked.wait, 30)


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_answer_now_ends_the_thought_and_the_answer_follows(
    alice_api: AsyncClient, thinker: Server, thinking_process: LlamaProcess, elsewhere: bool
) -> None:
    """From the process that writes, and from any other."""
    with thinking_process.slowed():
        _, answer = await ask(alice_api, params={"thinking": 3000}, max_tokens=40)
        await until_it_thinks(alice_api, answer)
        if elsewhere:
            await runner_registry.send_command(answer, f"{runner.ANSWER_NOW}{answer}")
        else:
            told = await alice_api.post(f"/api/v1/answers/{answer}/answer-now")
            assert told.status_code == 200
        await events_of(alice_api, answer)
    saved = await Message.objects.aget(pk=answer)
    assert saved.status == Status.COMPLETE
    assert len(saved.content) > 20
    assert saved.reasoning_tokens
    assert saved.reasoning_tokens < 2900  # of its budget: the thought was ended before


async def test_a_chat_without_thinking(alice_api: AsyncClient, thinker: Server) -> None:
    _, answer = await ask(alice_api, params={"thinking": "off"}, max_tokens=30)
    await events_of(alice_api, answer)
    saved = await Message.objects.aget(pk=answer)
    assert (saved.finish_reason, bool(saved.content)) == ("length", True)
    assert (saved.reasoning_tokens or 0) <= 1
    assert saved.length_limit == "Stopped at max tokens (30)"


async def test_a_chat_with_a_budget_counts_thought_and_answer(
    alice_api: AsyncClient, thinker: Server
) -> None:
    _, answer = await ask(alice_api, params={"thinking": 50}, max_tokens=30)
    await events_of(alice_api, answer)
    saved = await Message.objects.aget(pk=answer)
    assert saved.reasoning_tokens is not None
    assert 40 <= saved.reasoning_tokens <= 60
    assert saved.completion_tokens is not None
    assert saved.completion_tokens >= saved.reasoning_tokens + 30
    assert saved.prompt_tokens is not None
    assert saved.prompt_tokens > 10


async def test_a_title_of_a_model_that_thinks_is_no_thought(
    alice_api: AsyncClient, thinker: Server
) -> None:
    conversation, answer = await ask(alice_api, params={"thinking": "on"}, max_tokens=10)
    await events_of(alice_api, answer)
    found = await Conversation.objects.select_related("active_leaf").aget(pk=conversation)
    prompt = await in_db(lambda: build.side_request(found, "A title?", max_tokens=20))
    prepared = prepare(prompt, thinker)
    title = await prepared.target.client.complete(prepared.request)
    assert len(title.text) >= 20
    assert len(title.reasoning) <= 2


async def test_a_server_that_cannot_end_a_thought_is_asked_again_without(
    alice_api: AsyncClient, alice_browser: AsyncClient
) -> None:
    thoughts = [part for _ in range(400) for part in think("Hm. ")]
    process = Pondering([thoughts, say("Blue it is.")])
    with process:
        await in_db(create_tool_server, process)
        _, answer = await ask(alice_api)
        await until_it_thinks(alice_api, answer)
        response = await alice_browser.post(reverse("chat:answer_now", args=[answer]))
        assert response.status_code == 204
        process.was_asked.set()
        await events_of(alice_api, answer)
    saved = await Message.objects.aget(pk=answer)
    assert saved.content == "Blueitis."
    assert saved.reasoning.startswith("Hm. ")
    assert process.asked[1]["reasoning_effort"] == "none"
    assert saved.reasoning_tokens is not None
    assert saved.reasoning_tokens < 400


async def test_a_finished_answer_stays_as_it_is(alice_api: AsyncClient) -> None:
    with ToolServer([say("Blue it is.")]) as process:
        await in_db(create_tool_server, process)
        _, answer = await ask(alice_api)
        await events_of(alice_api, answer)
        found = await alice_api.post(f"/api/v1/answers/{answer}/answer-now")
    assert found.json()["status"] == "complete"
