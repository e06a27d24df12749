"""OpenAI's SDK, unmodified, on the gateway in front of a real llama.cpp."""

from collections.abc import AsyncIterator

import httpx2
import openai  # noqa: TID251 - a program that asks us
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from apps.core.models import ApiKey, KeyScope
from apps.gateway.application import Gateway
from apps.llm.permits.keys import permit_key
from apps.runtime.redis import async_redis
from apps.servers.models import Server
from tests.llama_process import LlamaProcess

pytestmark = pytest.mark.django_db(transaction=True)
ASKED = {
    "messages": [{"role": "user", "content": "Say something."}],
    "max_tokens": 12,
    "temperature": 0,
    "seed": 1,
}


def sdk_with(token: str, gateway: Gateway) -> openai.AsyncOpenAI:
    http_client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=gateway))
    return openai.AsyncOpenAI(
        base_url="http://workbench/v1", api_key=token, http_client=http_client, max_retries=0
    )


@pytest.fixture
async def sdk(
    token: str, gateway: Gateway, server: Server, loop_closed: None
) -> AsyncIterator[openai.AsyncOpenAI]:
    async with sdk_with(token, gateway) as client:
        yield client


@pytest.fixture
async def model(sdk: openai.AsyncOpenAI) -> str:
    return (await sdk.models.list()).data[0].id


async def test_models_of_all_servers_are_listed(
    sdk: openai.AsyncOpenAI, server: Server, embedding_server: Server
) -> None:
    listed = (await sdk.models.list()).data
    assert {model.owned_by for model in listed} == {"Chat", "Embeddings"}
    chat = next(model for model in listed if model.owned_by == "Chat")
    assert (chat.model_extra or {})["context"] == 4096
    assert (chat.model_extra or {})["slots"] == 4


async def test_one_model_is_retrieved_by_its_name(sdk: openai.AsyncOpenAI, model: str) -> None:
    listed = (await sdk.models.list()).data
    assert await sdk.models.retrieve(model) == listed[0]
    with pytest.raises(openai.NotFoundError, match="no model “nope”"):
        await sdk.models.retrieve("nope")


async def test_answer_is_the_model_servers_own(
    sdk: openai.AsyncOpenAI, model: str, llama: LlamaProcess
) -> None:
    direct = openai.AsyncOpenAI(base_url=llama.base_url, api_key=llama.api_key)
    expected = await direct.chat.completions.create(model=model, **ASKED)  # type: ignore[call-overload]
    answer = await sdk.chat.completions.create(model=model, **ASKED)  # type: ignore[call-overload]
    assert answer.choices[0].message.content == expected.choices[0].message.content
    assert answer.usage.completion_tokens == expected.usage.completion_tokens
    pieces = []
    stream = await sdk.chat.completions.create(model=model, stream=True, **ASKED)  # type: ignore[call-overload]
    async for chunk in stream:
        pieces += [choice.delta.content or "" for choice in chunk.choices]
    assert "".join(pieces) == expected.choices[0].message.content
    await direct.close()


async def test_default_model_answers_where_none_is_named(
    program: httpx2.AsyncClient, server: Server
) -> None:
    answer = await program.post("/v1/chat/completions", json=ASKED)
    assert answer.status_code == 200
    assert answer.json()["usage"]["completion_tokens"] > 0
    seen = await Server.objects.aget()
    totals = await async_redis().hgetall(permit_key(seen.pk, "totals"))
    assert f"requests:{seen.model_ids[0]}".encode() in totals  # by its name, from the first on


async def test_embeddings(sdk: openai.AsyncOpenAI, embedding_server: Server) -> None:
    listed = (await sdk.models.list()).data
    name = next(model.id for model in listed if model.owned_by == "Embeddings")
    answer = await sdk.embeddings.create(model=name, input=["one", "two"])
    assert [len(item.embedding) > 3 for item in answer.data] == [True, True]


async def test_errors_are_those_of_the_sdk(
    sdk: openai.AsyncOpenAI, model: str, gateway: Gateway, alice: User
) -> None:
    with pytest.raises(openai.NotFoundError, match="No model server has “gpt-9”"):
        await sdk.chat.completions.create(model="gpt-9", **ASKED)  # type: ignore[call-overload]
    with pytest.raises(openai.BadRequestError):  # llama.cpp's own words
        await sdk.chat.completions.create(model=model, messages="no list")  # type: ignore[arg-type]
    with pytest.raises(openai.AuthenticationError, match="Send a valid key"):
        await sdk_with("wb_wrong", gateway).models.list()
    _, reader = await sync_to_async(ApiKey.issue)(user=alice, name="r", scope=KeyScope.READ)
    assert (await sdk_with(reader, gateway).models.list()).data
    with pytest.raises(openai.PermissionDeniedError, match="read only"):
        await sdk_with(reader, gateway).chat.completions.create(model=model, **ASKED)  # type: ignore[call-overload]


async def test_a_server_that_is_away_is_told_with_a_time_to_wait(
    program: httpx2.AsyncClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.servers.retry.RESTART_SECONDS", 0.0)
    listed = (await program.get("/v1/models")).json()["data"]
    server.base_url = "http://127.0.0.1:9/v1"
    await server.asave(update_fields=["base_url"])
    answer = await program.post("/v1/chat/completions", json={"model": listed[0]["id"], **ASKED})
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert answer.json()["error"]["type"] == "server_error"
