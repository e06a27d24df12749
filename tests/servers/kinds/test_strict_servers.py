"""Servers that refuse fields they do not know are asked without them, and that is remembered."""

from collections.abc import Iterator

import pytest

from apps.llm import errors
from apps.llm.client import ChatRequest, Client, client_for
from apps.runtime.async_db import in_db
from apps.servers.models import Kind, Server, State
from apps.servers.services import refresh_server
from tests.llama_process import LlamaProcess
from tests.servers.conftest import server_at
from tests.standins import Standin

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("loop_closed")]

REFUSED = ["cache_prompt", "max_tokens", "min_p", "top_k"]
DIALECTS = {
    **dict.fromkeys(["openai", "openai-one", "groq", "openrouter", "vllm"], REFUSED),
    "mistral": ["cache_prompt", "min_p", "stream_options", "top_k"],
}
REQUEST = ChatRequest(
    "m",
    [{"role": "user", "content": "Hello"}],
    8,
    {"temperature": 0.5, "min_p": 0.05, "top_k": 20, "cache_prompt": True},
)


@pytest.fixture(scope="module")
def strict(llama: LlamaProcess) -> Iterator[Standin]:
    with Standin("strict", llama) as standin:
        yield standin


def asked(standin: Standin, before: int) -> list[int]:
    return [asked["status"] for asked in standin.asked[before:]]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_question_is_answered_and_the_fields_are_remembered(
    strict: Standin, dialect: str
) -> None:
    strict.change(dialect=dialect)
    server = await in_db(server_at, strict)
    await refresh_server(server)
    assert (server.kind, server.state) == (Kind.OPENAI, State.READY)
    answer = await client_for(server.endpoint).complete(REQUEST)
    assert answer.usage.completion_tokens == 8  # also where `stream_options` is refused
    known = await in_db(Server.objects.get)
    assert known.facts.refused_fields == {"m": DIALECTS[dialect]}

    before = len(strict.asked)
    await client_for(known.endpoint).complete(REQUEST)
    client = Client(known.endpoint)  # as another process would
    await client.complete(REQUEST)
    await client.aclose()
    assert asked(strict, before) == [200, 200]
    last = strict.asked[-1]["fields"]
    assert ("max_completion_tokens" in last) is (dialect != "mistral")
    assert not {"return_progress", *DIALECTS[dialect]} & set(last)


async def test_a_server_that_ignores_fields_gets_them_all(strict: Standin) -> None:
    strict.change(dialect="lenient")
    server = await in_db(server_at, strict)
    before = len(strict.asked)
    await client_for(server.endpoint).complete(REQUEST)
    assert [asked["status"] for asked in strict.asked[before:]] == [200]
    assert {"max_tokens", "min_p"} <= set(strict.asked[-1]["fields"])
    assert not (await in_db(Server.objects.get)).facts.refused_fields


async def test_refused_fields_outlast_a_refresh(strict: Standin) -> None:
    strict.change(dialect="openai")
    server = await in_db(server_at, strict)
    await refresh_server(server)
    await client_for(server.endpoint).complete(REQUEST)
    server = await in_db(Server.objects.get)
    await in_db(Server.objects.update, checked_at=None)
    server = await refresh_server(await in_db(Server.objects.get))
    assert "min_p" in server.facts.refused_fields["m"]


async def test_embeddings(llama: LlamaProcess, llama_embeddings: LlamaProcess) -> None:
    with Standin("strict", llama_embeddings) as standin:
        server = await in_db(server_at, standin)
        await refresh_server(server)
        vectors = await client_for(server.endpoint).embed("m", ["one", "two"])
        assert len(vectors) == 2
        assert (await in_db(Server.objects.get)).facts.refused_fields == {"m": ["encoding_format"]}


async def test_a_stream_of_tokens(strict: Standin) -> None:
    server = await in_db(server_at, strict)
    events = [event async for event in client_for(server.endpoint).stream_chat(REQUEST)]
    assert events


async def test_what_a_question_needs_is_not_left_out(strict: Standin) -> None:
    server = await in_db(server_at, strict)
    request = ChatRequest("m", REQUEST.messages, 8, {"messages_of": "nobody", "logprobs": True})
    with pytest.raises(errors.BadRequest, match="logprobs"):
        await client_for(server.endpoint).complete(request)
