"""The only way to a model server, and the only module that imports the OpenAI SDK.

Everything that generates is streamed (a closed stream frees its slot within a token), carries
`max_tokens` (else a model may write until its context is full) and asks for progress (a prompt
being read can then be interrupted too). The SDK makes the request; its typed decoding of the
stream costs 0.14 ms of CPU per token, so the event lines are read here. `transport.py` carries
them.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NotRequired, TypedDict
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

import httpx2  # what the SDK speaks through: it lets errors amid a stream pass as they are
import numpy as np
import openai  # noqa: TID251 - this is the room it is banned to
from numpy.typing import NDArray
from openai import AsyncOpenAI  # noqa: TID251

from apps.llm import errors
from apps.llm.chunks import ChunkReader
from apps.llm.endpoint import Endpoint
from apps.llm.events import Done, Event, Reasoning, Token, Usage
from apps.llm.transport import READ, Transport

CONNECT_SECONDS = 5.0
# Before the first byte a prompt of tens of thousands of tokens may be read on a slow machine;
# afterwards llama-server breaks its silence every 30 s.
FIRST_BYTE_SECONDS = 300.0
GAP_SECONDS = 65.0
NATIVE_SECONDS = 5.0
_PATIENT = openai.Timeout(None, connect=CONNECT_SECONDS, read=FIRST_BYTE_SECONDS)

# Asks the SDK for the response itself, unread: what `with_streaming_response` sends as well.
_UNREAD = {"X-Stainless-Raw-Response": "stream"}


class Message(TypedDict):
    role: str
    content: str
    reasoning_content: NotRequired[str]
    """What the model thought before; only for templates that keep it."""
    tool_calls: NotRequired[list[dict[str, Any]]]
    """What an assistant's message called, as it was streamed."""
    tool_call_id: NotRequired[str]
    """Of a message with the role "tool": which call it answers."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    model: str
    messages: Sequence[Message]
    max_tokens: int
    params: Mapping[str, Any] = field(default_factory=dict)
    response_format: Mapping[str, Any] | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    """Definitions of functions, in the order in which they are sent."""
    tool_choice: str = ""
    """"auto", "none" or "required"; empty: the server's default, which is "auto"."""
    parallel_tool_calls: bool | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer. It is JSON only when `finish_reason` is "stop"."""

    text: str
    reasoning: str
    finish_reason: str
    usage: Usage


class Client:
    """One server, seen from one event loop. Get it with `client_for`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        # No retries in the SDK: it would repeat what must not be repeated (a prompt that is too
        # long, an overflowed pool). The one policy is `transient` and belongs to the caller.
        self._sdk = AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key or "none",
            max_retries=0,
            timeout=openai.Timeout(None, connect=CONNECT_SECONDS),
            http_client=_http_client(endpoint),
        )

    async def aclose(self) -> None:
        await self._sdk.close()

    async def stream_chat(self, request: ChatRequest) -> AsyncIterator[Event]:
        """The answer as it is written. Closing the iterator frees the server's slot at once.

        Raises:
            LLMError: anything short of a complete answer, also after some events.
        """
        body = {
            "model": request.model,
            "messages": request.messages,
            "max_tokens": request.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
            **request.params,
        }
        if request.response_format is not None:
            body["response_format"] = request.response_format
        if request.tools:
            body["tools"] = request.tools
            if request.tool_choice:
                body["tool_choice"] = request.tool_choice
            if request.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = request.parallel_tool_calls
        finished = False
        with _translated():
            # Not through `chat.completions.create`: checking every argument against its type
            # takes a millisecond, three times as long as all the rest of the SDK's work.
            response = await self._sdk.post(
                "/chat/completions",
                cast_to=httpx2.Response,
                body=body,
                options={"headers": _UNREAD, "timeout": _PATIENT},
            )
            try:
                reader, read = ChunkReader(), _read_of(response)
                while data := await read():
                    for event in reader.feed(data):
                        finished = finished or isinstance(event, Done)
                        yield event
            finally:
                await response.aclose()
        if not finished:
            raise errors.CutOff("The connection to the model server ended before the answer did.")

    async def complete(self, request: ChatRequest) -> Completion:
        """The whole answer, streamed all the same: a dropped request then frees its slot at once.

        Raises:
            LLMError: anything short of a complete answer.
        """
        text: list[str] = []
        reasoning: list[str] = []
        usage = Usage(0, 0, 0)
        finish_reason = ""
        async for event in self.stream_chat(request):
            match event:
                case Token():
                    text.append(event.text)
                case Reasoning():
                    reasoning.append(event.text)
                case Usage():
                    usage = event
                case Done():
                    finish_reason = event.finish_reason
        return Completion("".join(text), "".join(reasoning), finish_reason, usage)

    async def embed(self, model: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector per text, in order: (len(texts), dimensions), as the server normalised them.

        Raises:
            LLMError: the call failed as a whole; one text too large fails all of them.
        """
        with _translated():
            reply = await self._sdk.embeddings.create(
                model=model, input=list(texts), timeout=_PATIENT
            )
        ordered = sorted(reply.data, key=lambda item: item.index)
        if len(ordered) != len(texts):
            raise errors.ServerFailed(
                f"The embedding server answered {len(texts)} texts with {len(ordered)} vectors."
            )
        return np.asarray([item.embedding for item in ordered], dtype=np.float32)

    async def get(self, path: str) -> Any:
        """A native route of the server, such as "/props", decoded.

        Raises:
            LLMError: no JSON answer with status 200.
        """
        with _translated():
            return await self._sdk.get(
                self.endpoint.root + path, cast_to=object, options={"timeout": NATIVE_SECONDS}
            )

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """Like `get`, for native routes that take a body."""
        with _translated():
            return await self._sdk.post(
                self.endpoint.root + path,
                cast_to=object,
                body=body,
                options={"timeout": NATIVE_SECONDS},
            )

    async def count_tokens(self, model: str, messages: Sequence[Message]) -> int | None:
        """How long the prompt is with the template applied, in tokens; None where nobody counts."""
        try:
            reply = await self.post(
                "/v1/chat/completions/input_tokens", {"model": model, "messages": list(messages)}
            )
        except (errors.UnknownModel, errors.NotSupported, errors.BadRequest):
            return None
        count = reply.get("input_tokens") if isinstance(reply, dict) else None
        return count if isinstance(count, int) else None


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Endpoint, Client]] = WeakKeyDictionary()


def client_for(endpoint: Endpoint) -> Client:
    """The client of this server in the running event loop; connections are pooled in it."""
    clients = _by_loop.setdefault(asyncio.get_running_loop(), {})
    if endpoint not in clients:
        clients[endpoint] = Client(endpoint)
    return clients[endpoint]


async def close_clients() -> None:
    """Closes the clients of the running loop: the last thing a loop of ours does."""
    for client in _by_loop.pop(asyncio.get_running_loop(), {}).values():
        with suppress(RuntimeError):  # a connection whose transport is gone already
            await client.aclose()


def _http_client(endpoint: Endpoint) -> httpx2.AsyncClient:
    """What carries the requests: our transport, or the SDK's own where a proxy is in between.

    Redirects are not followed: they could carry the key to another server.
    """
    address = urlsplit(endpoint.base_url)
    is_proxied = address.scheme in getproxies() and not proxy_bypass(address.netloc)
    transport = None if is_proxied else Transport(gap=GAP_SECONDS)
    return httpx2.AsyncClient(transport=transport, follow_redirects=False)


class _translated:
    """Turns what the SDK raises into our errors."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        match error:
            case openai.APIStatusError():
                raise errors.from_reply(
                    error.status_code, error.body, error.response.headers.get("retry-after")
                ) from error
            case openai.APITimeoutError() if not isinstance(error.__cause__, httpx2.ConnectTimeout):
                raise errors.Stalled(
                    "The model server did not answer in time. It may be stuck: look at its log."
                ) from error
            case openai.APIConnectionError():
                raise errors.Unreachable(
                    "Nobody answers at the model server's address. Is it running?"
                ) from error
            case httpx2.ReadTimeout():
                raise errors.Stalled(
                    f"The model server fell silent for {GAP_SECONDS:.0f} seconds."
                ) from error
            case httpx2.TransportError():
                raise errors.CutOff(
                    "The connection to the model server broke before the answer was complete."
                ) from error
            case openai.APIError():
                raise errors.from_reply(None, error.body or str(error)) from error


def _read_of(response: httpx2.Response) -> Callable[[], Awaitable[bytes]]:
    """Reads what has come of a body since the last time; b"" at its end.

    Our transport's own, where nothing has to be unpacked: the generators of `aiter_bytes` cost as
    much per token as all the rest of reading.
    """
    read: Callable[[], Awaitable[bytes]] | None = response.extensions.get(READ)
    if read is not None and "content-encoding" not in response.headers:
        return read
    pieces = response.aiter_bytes()
    return lambda: anext(pieces, b"")
