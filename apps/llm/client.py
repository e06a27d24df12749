"""The only way to a model server, and the only module that imports the OpenAI SDK.

Everything that generates is streamed (a closed stream frees its slot within a token), carries
`max_tokens` (else a model may write until its context is full) and asks for progress (a prompt
being read can then be interrupted too). The SDK makes the request; its typed decoding of the
stream costs 0.14 ms of CPU per token, so the event lines are read here.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypedDict, TypeVar, cast
from weakref import WeakKeyDictionary

import httpx2  # what the SDK speaks through: it lets errors amid a stream pass as they are
import numpy as np
import openai  # noqa: TID251 - this is the room it is banned to
from numpy.typing import NDArray
from openai import AsyncOpenAI  # noqa: TID251

from apps.llm import errors
from apps.llm.endpoint import Endpoint
from apps.llm.events import Done, Event, Progress, Reasoning, Token, ToolCall, Usage

T = TypeVar("T")

CONNECT_SECONDS = 5.0
# Before the first byte a prompt of tens of thousands of tokens may be read on a slow machine;
# afterwards llama-server breaks its silence every 30 s.
FIRST_BYTE_SECONDS = 300.0
GAP_SECONDS = 65.0
NATIVE_SECONDS = 5.0

# What the SDK has an argument for; every other parameter travels in the body as it is.
SDK_PARAMETERS = frozenset(
    {"temperature", "top_p", "seed", "stop", "presence_penalty", "frequency_penalty"}
)


class Message(TypedDict):
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    model: str
    messages: Sequence[Message]
    max_tokens: int
    params: Mapping[str, Any] = field(default_factory=dict)
    response_format: Mapping[str, Any] | None = None


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
        )

    async def aclose(self) -> None:
        await self._sdk.close()

    async def stream_chat(self, request: ChatRequest) -> AsyncIterator[Event]:
        """The answer as it is written. Closing the iterator frees the server's slot at once.

        Raises:
            LLMError: anything short of a complete answer, also after some events.
        """
        params = dict(request.params)
        known = {name: params.pop(name) for name in SDK_PARAMETERS & params.keys()}
        if request.response_format is not None:
            known["response_format"] = dict(request.response_format)
        send = partial(
            self._sdk.chat.completions.with_streaming_response.create,
            model=request.model,
            messages=cast(list[Any], request.messages),
            max_tokens=request.max_tokens,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"return_progress": True, **params},
            timeout=openai.Timeout(None, connect=CONNECT_SECONDS, read=FIRST_BYTE_SECONDS),
            **known,
        )
        finished = False
        with _translated():
            async with AsyncExitStack() as connection:
                response = await _once_more(lambda: connection.enter_async_context(send()))
                async for data in _event_data(response.iter_bytes()):
                    for event in _events(data):
                        finished = finished or isinstance(event, Done)
                        yield event
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
            reply = await _once_more(
                lambda: self._sdk.embeddings.create(
                    model=model,
                    input=list(texts),
                    timeout=openai.Timeout(None, connect=CONNECT_SECONDS, read=FIRST_BYTE_SECONDS),
                )
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
            return await _once_more(
                lambda: self._sdk.get(
                    self.endpoint.root + path, cast_to=object, options={"timeout": NATIVE_SECONDS}
                )
            )

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """Like `get`, for native routes that take a body."""
        with _translated():
            return await _once_more(
                lambda: self._sdk.post(
                    self.endpoint.root + path,
                    cast_to=object,
                    body=body,
                    options={"timeout": NATIVE_SECONDS},
                )
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


# How a connection from the pool ends that the server had closed just before we used it:
# llama-server does so after 100 requests, or five quiet seconds.
_HUNG_UP = (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError)


async def _once_more(send: Callable[[], Awaitable[T]]) -> T:
    """Sends a request, a second time if the connection broke before the first byte of an answer."""
    try:
        return await send()
    except openai.APIConnectionError as error:
        if not isinstance(error.__cause__, _HUNG_UP):
            raise
    return await send()


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
            case openai.APITimeoutError():
                raise errors.Stalled(
                    "The model server did not answer in time. It may be stuck: look at its log."
                ) from error
            case openai.APIConnectionError():
                raise errors.Unreachable(
                    "Nobody answers at the model server's address. Is it running?"
                ) from error
            case httpx2.TransportError():
                raise errors.CutOff(
                    "The connection to the model server broke before the answer was complete."
                ) from error
            case openai.APIError():
                raise errors.from_reply(None, error.body or str(error)) from error


async def _event_data(chunks: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    """The JSON objects of a server-sent event stream, however it was cut on the way.

    Raises:
        Stalled: nothing came for GAP_SECONDS.
        LLMError: the server wrote an error into the stream, with or without `data:` before it.
    """
    rest = b""
    while True:
        try:
            async with asyncio.timeout(GAP_SECONDS):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            raise errors.Stalled(
                f"The model server fell silent for {GAP_SECONDS:.0f} seconds."
            ) from error
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {"):
                data = json.loads(line[6:])
                if "error" in data:
                    raise errors.from_reply(None, data)
                yield data
            elif line.startswith((b"{", b"error: ")):
                # A proxy whose model failed to load writes a bare JSON line; an old llama-server
                # its own kind of event.
                raise errors.from_reply(None, _decoded(line.removeprefix(b"error: ")))


def _decoded(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return line.decode(errors="replace")


def _events(data: dict[str, Any]) -> list[Event]:
    """The events in one chunk of a chat stream. Fields may be missing and unknown ones may come."""
    found: list[Event] = []
    if progress := data.get("prompt_progress"):
        found.append(
            Progress(
                progress.get("total", 0), progress.get("cache", 0), progress.get("processed", 0)
            )
        )
    for choice in data.get("choices") or ():
        delta = choice.get("delta") or {}
        # What a proxy streams about loading the model has no id and is nobody's reasoning.
        if (reasoning := delta.get("reasoning_content")) and data.get("id"):
            found.append(Reasoning(reasoning))
        if content := delta.get("content"):
            found.append(Token(content))
        found.extend(ToolCall(call) for call in delta.get("tool_calls") or ())
        if reason := choice.get("finish_reason"):
            found.append(Done(reason))
    if usage := data.get("usage"):
        details = usage.get("prompt_tokens_details") or {}
        timings = data.get("timings") or {}
        found.append(
            Usage(
                usage.get("prompt_tokens", 0),
                details.get("cached_tokens") or 0,
                usage.get("completion_tokens", 0),
                timings.get("predicted_per_second") or None,
            )
        )
    return found
