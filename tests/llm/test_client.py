"""The client against a real llama.cpp."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from apps.llm import errors
from apps.llm.client import ChatRequest, Client
from apps.llm.endpoint import Endpoint
from apps.llm.events import Done, Progress, Token, Usage
from apps.servers.models import Kind, State
from apps.servers.probing.discovery import fetch_slots, probe
from tests.llama_process import LlamaProcess, free_port
from tests.waiting import until


@pytest.fixture
async def client(llama: LlamaProcess) -> AsyncIterator[Client]:
    client = Client(Endpoint(llama.base_url, llama.api_key))
    yield client
    await client.aclose()


def question(text: str = "Hello", max_tokens: int = 20) -> ChatRequest:
    return ChatRequest("any", [{"role": "user", "content": text}], max_tokens)


async def busy_slots(client: Client) -> int:
    return sum(slot["is_processing"] for slot in await fetch_slots(client) or [])


async def test_streams_typed_events_and_ends_with_usage(client: Client) -> None:
    events = [event async for event in client.stream_chat(question())]
    assert isinstance(events[0], Progress)
    tokens = [event for event in events if isinstance(event, Token)]
    done = [event for event in events if isinstance(event, Done)]
    usage = [event for event in events if isinstance(event, Usage)]
    assert tokens
    assert all(token.text for token in tokens)
    assert [event.finish_reason for event in done] == ["length"]
    assert usage[-1].completion_tokens == 20
    assert usage[-1].prompt_tokens > 5


async def test_the_second_time_the_prompt_comes_from_the_cache(client: Client) -> None:
    text = "A rather long question that is asked twice. " * 10
    await client.complete(question(text))
    again = await client.complete(question(text))
    assert again.usage.cached_tokens >= again.usage.prompt_tokens - 5


async def test_closing_the_stream_frees_the_slot(client: Client, llama: LlamaProcess) -> None:
    before = llama.written()
    with llama.slowed():
        stream = client.stream_chat(question(max_tokens=4000))
        async for event in stream:
            if isinstance(event, Token):
                break
        assert await busy_slots(client) == 1
        await stream.aclose()  # type: ignore[attr-defined]
    await asyncio.to_thread(llama.wait_until_idle)
    assert llama.written() < before + 4000


async def test_prompt_too_long_says_both_sizes(client: Client) -> None:
    with pytest.raises(errors.PromptTooLong) as caught:
        await client.complete(question("x" * 9000))
    assert caught.value.context == 4096
    assert "4,096" in str(caught.value)
    assert not caught.value.transient


async def test_wrong_key(llama: LlamaProcess) -> None:
    client = Client(Endpoint(llama.base_url, "wrong"))
    with pytest.raises(errors.Unauthorized):
        await client.complete(question())
    assert (await probe(client)).state == State.UNAUTHORIZED
    await client.aclose()


async def test_nobody_there() -> None:
    client = Client(Endpoint(f"http://127.0.0.1:{free_port()}/v1"))
    with pytest.raises(errors.Unreachable) as caught:
        await client.complete(question())
    assert caught.value.transient
    await client.aclose()


async def test_bad_schema_is_the_callers_fault(client: Client) -> None:
    request = ChatRequest(
        "any",
        [{"role": "user", "content": "Hi"}],
        10,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "x", "schema": {"type": "no-such-type"}},
        },
    )
    with pytest.raises(errors.BadRequest):
        await client.complete(request)


async def test_server_killed_in_mid_answer_is_not_a_complete_answer(tiny_model: Path) -> None:
    with LlamaProcess(tiny_model, context_per_slot=8192) as process:
        client = Client(Endpoint(process.base_url, process.api_key))

        async def killed_at_the_first_token() -> None:
            async for event in client.stream_chat(question(max_tokens=8000)):
                if isinstance(event, Token):
                    process.kill()

        with process.slowed(), pytest.raises(errors.CutOff):
            await killed_at_the_first_token()
        await client.aclose()


class HangsUp:
    """Takes one request on each connection and hangs up on the next, as a keep-alive limit does."""

    def __init__(self) -> None:
        self.requests = self.open = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        with suppress(asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            self.requests += 1
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
            writer.write(b"content-length: 2\r\n\r\n{}")
            await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()
        self.open -= 1


async def test_a_reused_connection_that_was_closed_costs_nothing() -> None:
    server = HangsUp()
    async with await asyncio.start_server(server, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        client = Client(Endpoint(f"http://127.0.0.1:{port}/v1"))
        assert [await client.get("/props") for _ in range(3)] == [{}, {}, {}]
        assert server.requests == 3
        await client.aclose()
        await until(lambda: not server.open)


async def test_counts_tokens(client: Client) -> None:
    assert (await client.count_tokens("any", [{"role": "user", "content": "abc"}]) or 0) > 3


async def test_probe_finds_a_llama_server_and_its_slots(client: Client) -> None:
    facts = await probe(client)
    assert (facts.state, facts.kind, facts.slots, facts.context) == (
        State.READY,
        Kind.LLAMA_SERVER,
        4,
        4096,
    )


async def test_embeddings_keep_their_order(llama_embeddings: LlamaProcess) -> None:
    client = Client(Endpoint(llama_embeddings.base_url, llama_embeddings.api_key))
    both = await client.embed("any", ["first text", "second text"])
    alone = await client.embed("any", ["second text"])
    assert both.shape == (2, 64)
    assert both[1] @ alone[0] > 0.999
    await client.aclose()


async def test_chat_server_does_not_embed(client: Client) -> None:
    with pytest.raises(errors.NotSupported):
        await client.embed("any", ["text"])
