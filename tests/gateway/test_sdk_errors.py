"""OpenAI's SDK raises its own error classes for what the gateway refuses."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai  # noqa: TID251 - a program that asks us
import pytest

from apps.core.models import ApiKey
from apps.gateway.application import Gateway
from apps.servers.models import Server
from tests.gateway.test_bytes import Recorder, odd, recorder
from tests.gateway.test_openai_sdk import sdk_with

__all__ = ["odd", "recorder"]
pytestmark = pytest.mark.django_db(transaction=True)
HELLO: list[openai.types.chat.ChatCompletionMessageParam] = [{"role": "user", "content": "Hello"}]


@pytest.fixture
async def sdk(token: str, gateway: Gateway, loop_closed: None) -> AsyncIterator[openai.AsyncOpenAI]:
    async with sdk_with(token, gateway) as client:
        yield client


@pytest.fixture
def breaks_off(recorder: type[Recorder]) -> None:
    """The server's connection ends within a stream."""

    def answer(self: Recorder) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", "9999")
        self.end_headers()
        self.wfile.write(b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n')
        self.close_connection = True

    recorder.do_POST = answer  # type: ignore[method-assign]


async def limit(**limits: Any) -> None:
    key = await ApiKey.objects.aget()
    for name, value in limits.items():
        setattr(key, name, value)
    await key.asave()


@pytest.mark.usefixtures("no_counters")
async def test_a_limit_is_a_rate_limit_error(sdk: openai.AsyncOpenAI, odd: Server) -> None:
    await limit(tokens_per_day=1)
    await sdk.chat.completions.create(model="odd", messages=HELLO)
    with pytest.raises(openai.RateLimitError) as reached:
        await sdk.chat.completions.create(model="odd", messages=HELLO)
    assert int(reached.value.response.headers["retry-after"]) > 0
    assert reached.value.code == "token_limit_reached"


async def test_a_limit_that_waiting_does_not_change(sdk: openai.AsyncOpenAI, odd: Server) -> None:
    await limit(max_tokens=5)
    with pytest.raises(openai.BadRequestError, match="5 tokens at most"):
        await sdk.chat.completions.create(model="odd", messages=HELLO, max_tokens=6)
    await limit(allowed_models=["another"])
    with pytest.raises(openai.PermissionDeniedError, match="Allowed: another"):
        await sdk.chat.completions.create(model="odd", messages=HELLO, max_tokens=5)


async def test_a_server_that_is_away_is_a_server_error(
    sdk: openai.AsyncOpenAI, odd: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.servers.retry.RESTART_SECONDS", 0.0)
    odd.base_url = "http://127.0.0.1:9/v1"
    await odd.asave()
    with pytest.raises(openai.InternalServerError) as away:
        await sdk.chat.completions.create(model="odd", messages=HELLO)
    assert away.value.status_code == 503


async def test_a_server_that_fails_is_a_server_error(
    sdk: openai.AsyncOpenAI, odd: Server, recorder: type[Recorder]
) -> None:
    recorder.status, recorder.answer = 401, b'{"error":{"message":"Invalid API Key"}}'
    with pytest.raises(openai.InternalServerError) as failed:
        await sdk.chat.completions.create(model="odd", messages=HELLO)
    assert failed.value.status_code == 502


@pytest.mark.usefixtures("breaks_off")
async def test_a_stream_that_breaks_off_raises(sdk: openai.AsyncOpenAI, odd: Server) -> None:
    stream = await sdk.chat.completions.create(model="odd", messages=HELLO, stream=True)
    with pytest.raises(openai.APIError, match="connection"):
        async for _ in stream:
            pass


@pytest.mark.usefixtures("breaks_off")
async def test_anthropics_streams_end_with_an_error_event(
    program: httpx2.AsyncClient, odd: Server
) -> None:
    answer = await program.post("/v1/messages", json={"model": "odd", "stream": True})
    *_, last = answer.text.strip().split("\n\n")
    assert last.startswith('event: error\ndata: {"type": "error", "error": {"type": "')
