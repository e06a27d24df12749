"""Rows whose slot was taken go on where they were, on a real llama.cpp."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import cast

import pytest

from apps.llm import errors
from apps.llm.client import ChatRequest, Client, Completion, PartialCompletion
from apps.llm.endpoint import Endpoint
from apps.llm.events import Usage
from apps.llm.resume import ResumableCompletion
from apps.llm.stream.partial_completion import MIN_PARTIAL_CHARACTERS
from apps.llm.stream.sse_reader import WholeAnswer
from apps.servers.probing.discovery import fetch_slots
from tests.llama_process import LlamaProcess
from tests.waiting import until

LONG = ChatRequest("any", [{"role": "user", "content": "Say much."}], 900, {"seed": 5})
SCHEMA = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string", "minLength": 700, "maxLength": 800}},
}
JSON_ASKED = replace(
    LONG,
    max_tokens=2000,
    response_format={"type": "json_schema", "json_schema": {"name": "row", "schema": SCHEMA}},
)


class CutAnswer(WholeAnswer):
    """Cancels its request once a server could continue what has come."""

    request: asyncio.Task[Completion] | None = None

    def feed(self, data: bytes) -> None:
        super().feed(data)
        if self.request and len("".join(self.text).rstrip()) >= 2 * MIN_PARTIAL_CHARACTERS:
            self.request.cancel()


@pytest.fixture
async def client(llama: LlamaProcess, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    monkeypatch.setattr("apps.llm.client.WholeAnswer", CutAnswer)
    client = Client(Endpoint(llama.base_url, llama.api_key))
    yield client
    await client.aclose()


async def cut(client: Client, asking: Coroutine[None, None, Completion]) -> None:
    """Takes the request's slot in the middle of its answer."""

    async def is_idle() -> bool:
        return not any(slot["is_processing"] for slot in await fetch_slots(client) or [])

    CutAnswer.request = asyncio.create_task(asking)
    with pytest.raises(asyncio.CancelledError):
        await CutAnswer.request
    CutAnswer.request = None
    await until(is_idle)


async def test_what_was_written_is_not_written_again(client: Client) -> None:
    begun = PartialCompletion()
    await cut(client, client.complete(LONG, begun))
    first = begun.text
    assert first
    assert 0 < begun.tokens < 900  # fewer than the server wrote: some are still on the way
    whole = await client.complete(LONG, begun)
    assert whole.text.startswith(first)
    assert len(whole.text) > len(first)
    assert whole.usage.completion_tokens <= 900
    assert whole.usage.prompt_tokens > begun.tokens  # it read what was written


async def test_a_format_holds_for_both_parts_together(client: Client) -> None:
    draft = ResumableCompletion(can_continue=True)
    await cut(client, draft.complete(client, JSON_ASKED))
    whole = await draft.restart().complete(client, JSON_ASKED)
    assert whole.finish_reason == "stop"
    assert 700 <= len(json.loads(whole.text)["text"]) <= 800
    assert whole.usage.prompt_tokens > 40


async def test_whole_answers_are_taken_as_they_are(client: Client) -> None:
    short = replace(LONG, max_tokens=5)
    draft = ResumableCompletion(can_continue=True)
    first = await draft.complete(client, short)
    await cut(client, draft.complete(client, LONG))
    assert await draft.restart().complete(client, short) is first
    second = await draft.complete(client, LONG)
    assert second is not first
    assert await draft.restart().complete(client, replace(short, max_tokens=6)) is not first


async def test_a_server_that_does_not_go_on_is_asked_from_the_start(client: Client) -> None:
    draft = ResumableCompletion(can_continue=False)
    await cut(client, draft.complete(client, LONG))
    whole = await draft.restart().complete(client, LONG)
    plain = await client.complete(replace(LONG, max_tokens=1))
    assert whole.usage.prompt_tokens == plain.usage.prompt_tokens


class Refusing:
    """Begins an answer, is cut, and then does something else than going on."""

    def __init__(self, then: Completion | errors.LLMError) -> None:
        self.then = then
        self.begun: list[str] = []

    async def complete(self, request: ChatRequest, begun: PartialCompletion) -> Completion:
        self.begun.append(begun.text)
        if len(self.begun) == 1:
            begun.text = '{"te'
            raise asyncio.CancelledError
        if begun.text and isinstance(self.then, errors.LLMError):
            raise self.then
        return self.then if begun.text else done('{"text": "new"}')  # type: ignore[return-value]


def done(text: str) -> Completion:
    return Completion(text, "", "stop", Usage(1, 0, 1))


@pytest.mark.parametrize(
    "then",
    [
        errors.BadRequest("incompatible with enable_thinking"),
        done('{"te{"text": "anew"}'),
        done("[" * 100_000),
    ],
    ids=["refused", "a grammar that begins anew", "deeply nested"],
)
async def test_answer_that_cannot_continue_starts_again(then: Completion | errors.LLMError) -> None:
    server, draft = Refusing(then), ResumableCompletion(can_continue=True)
    with suppress(asyncio.CancelledError):
        await draft.complete(cast(Client, server), JSON_ASKED)
    whole = await draft.restart().complete(cast(Client, server), JSON_ASKED)
    assert whole.text == '{"text": "new"}'
    assert server.begun == ["", '{"te', ""]


async def test_a_server_that_is_away_keeps_what_was_begun() -> None:
    server, draft = (
        Refusing(errors.Unreachable("Nobody answers.")),
        ResumableCompletion(can_continue=True),
    )
    with suppress(asyncio.CancelledError):
        await draft.complete(cast(Client, server), JSON_ASKED)
    with pytest.raises(errors.Unreachable):
        await draft.restart().complete(cast(Client, server), JSON_ASKED)
    assert server.begun == ["", '{"te']
