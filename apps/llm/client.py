"""The only way to a model server, and the only module that imports the OpenAI SDK.

Everything that generates is streamed (a closed stream frees its slot within a token), carries
`max_tokens` where the server is known to count it as llama.cpp does (else a model may write until
its context is full) and asks for progress (a prompt
being read can then be interrupted too). The SDK makes the request; its typed decoding of the
stream costs 0.14 ms of CPU per token, so the event lines are read here. `transport.py` carries
them. The SDK is a quarter of all the CPU that a start takes, so who asks no model, such as beat
and most commands, does without; who does has it loaded before anybody waits (`load_sdk`).
"""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2  # what the SDK speaks through: it lets errors amid a stream pass as they are
import numpy as np
from numpy.typing import NDArray

from apps.llm import certificates, errors
from apps.llm.addresses import UNSENDABLE_KEY, is_sendable, problem_of
from apps.llm.endpoint import Endpoint
from apps.llm.events import Done, Event, Token, Usage
from apps.llm.failures import classify
from apps.llm.failures.request_fields import refused_fields, without
from apps.llm.stream.continuation import Rest
from apps.llm.stream.sse_reader import ChunkReader, WholeAnswer
from apps.llm.stream.think_tags import ThinkTags
from apps.llm.transport import LEFT, READ, READ_MUCH, Transport
from apps.llm.vectors import vectors_of
from apps.runtime.per_loop import PerLoop
from apps.servers.facts import learned

if TYPE_CHECKING:
    import openai  # noqa: TID251 - this is the room it is banned to
    from openai._models import FinalRequestOptions  # noqa: TID251
    from openai._types import RequestOptions  # noqa: TID251

CONNECT_SECONDS = 5.0
# Before the first byte a prompt of tens of thousands of tokens may be read on a slow machine;
# afterwards llama-server breaks its silence every 30 s.
FIRST_BYTE_SECONDS = 300.0
GAP_SECONDS = 65.0
# Those are comments. For so long they may be all that comes: a slow machine reads a prompt.
QUIET_SECONDS = 900.0
NATIVE_SECONDS = 5.0
# A shorter beginning of an answer is written again: it costs nothing, and what follows might begin
# like it without repeating it.
WORTH_CHARACTERS = 20
# A server that refuses one field after the other names them all in so many tries.
MOST_REFUSED = 12
_PATIENT = httpx2.Timeout(None, connect=CONNECT_SECONDS, read=FIRST_BYTE_SECONDS)

_CHAT = "/chat/completions"
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
    max_tokens: int | None
    """None: not sent, the server ends the answer where its context does."""
    params: Mapping[str, Any] = field(default_factory=dict)
    response_format: Mapping[str, Any] | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    """Definitions of functions, in the order in which they are sent."""
    tool_choice: str = ""
    """"auto", "none" or "required"; empty: the server's default, which is "auto"."""
    parallel_tool_calls: bool | None = None

    def going_on(self, text: str, tokens: int) -> "ChatRequest":
        """For the rest of an answer of which `text` has been written, in so many tokens."""
        *before, last = self.messages
        if last["role"] == "assistant":
            there: Message = {**last, "content": last["content"] + text}
            messages = [*before, there]
        else:
            messages = [*self.messages, {"role": "assistant", "content": text}]
        left = None if self.max_tokens is None else max(1, self.max_tokens - tokens)
        return replace(self, messages=messages, max_tokens=left)


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer. It is JSON only when `finish_reason` is "stop"."""

    text: str
    reasoning: str
    finish_reason: str
    usage: Usage


@dataclass(slots=True)
class Begun:
    """What there is of an answer whose request was closed before its end."""

    text: str = ""
    tokens: int = 0


class Client:
    """One server, seen from one event loop. Get it with `client_for`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._refuses: dict[str, frozenset[str]] = {}

    @cached_property
    def _sdk(self) -> "openai.AsyncOpenAI":
        """Made at the first request: an address that is none then fails as requests do."""
        if problem := problem_of(self.endpoint.base_url):
            raise errors.BadAddress(f"{problem} Correct it under Servers.")
        if not is_sendable(self.endpoint.api_key):
            raise errors.Unauthorized(f"{UNSENDABLE_KEY} Enter the right one under Servers.")
        return _sdk_of(self.endpoint)

    async def aclose(self) -> None:
        if sdk := vars(self).get("_sdk"):
            await sdk.close()

    async def stream_chat(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        """The answer as it is written. Closing the iterator frees the server's slot at once.

        Where the last message is the assistant's, what follows it: never that message once more.

        Raises:
            LLMError: anything short of a complete answer, also after some events.
        """
        finished = False
        rest, tags = _rest_of(request), ThinkTags()
        with _translated():
            response = await self._ask(request)
            try:
                reader, read = ChunkReader(), _read_of(response, READ)
                while data := await read():
                    for event in reader.feed(data):
                        finished = finished or isinstance(event, Done)
                        for new in _parted(event, tags) if rest is None else _new(event, rest):
                            yield new
                for event in reader.end():
                    finished = finished or isinstance(event, Done)
                    for new in _parted(event, tags) if rest is None else _new(event, rest):
                        yield new
            finally:
                await response.aclose()
        if not finished:
            raise _cut_off()

    async def complete(self, request: ChatRequest, begun: Begun | None = None) -> Completion:
        """The whole answer, streamed all the same: a dropped request then frees its slot at once.

        Nobody watches it being written, so it is read in large pieces: a token costs a fifth of
        the CPU that it costs in `stream_chat`.

        Args:
            begun: what is there of the answer, to go on from; it is part of what is returned. When
                the request is cancelled, what has been written stays in it.

        Raises:
            LLMError: anything short of a complete answer.
        """
        begun = begun or Begun()
        answer = WholeAnswer()
        with _translated():
            response = await self._ask(_after(begun, request))
            try:
                read = _read_of(response, READ_MUCH)
                while data := await read():
                    answer.feed(data)
            except asyncio.CancelledError:
                _keep(begun, answer, response)
                raise
            finally:
                await response.aclose()
        answer.end()
        if not answer.finish_reason:
            raise _cut_off()
        usage = answer.usage
        if begun.tokens:
            usage = replace(usage, completion_tokens=begun.tokens + usage.completion_tokens)
        text, reasoning = _whole(begun, answer, is_over=True), "".join(answer.reasoning)
        return Completion(text, reasoning, answer.finish_reason, usage)

    async def _ask(self, request: ChatRequest) -> httpx2.Response:
        """The answer's beginning; its body is still to be read, and then to be closed."""
        # Not through `chat.completions.create`: checking every argument against its type takes a
        # millisecond, three times as long as all the rest of the SDK's work.
        return await self._post(_CHAT, _body_of(request, progress=self.endpoint.tells_progress))

    async def _post(
        self, path: str, body: Mapping[str, Any], options: "RequestOptions | None" = None
    ) -> httpx2.Response:
        """Sends a request without the fields that this server refuses for the model.

        Which ones these are it says itself: it is then asked again, and that is remembered.
        """
        model = str(body["model"])
        known = self.endpoint.refuses.get(model, frozenset())
        refused = known | self._refuses.get(model, frozenset())
        while True:
            sent = without(body, refused) if refused else body
            try:
                response: httpx2.Response = await self._sdk.post(
                    path, cast_to=httpx2.Response, body=sent, options=options or {}
                )
            except Exception as error:
                status = getattr(error, "status_code", None)
                if status not in {400, 422} or len(refused) > MOST_REFUSED:
                    raise
                new = refused_fields(status, getattr(error, "body", None), sent)
                if not new:
                    raise
                refused |= new
                continue
            if refused - known:
                self._refuses[model] = refused
                await learned.keep_refused(self.endpoint.server, model, refused)
            return response

    async def embed(self, model: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector per text, in order: (len(texts), dimensions), as the server normalised them.

        Raises:
            LLMError: the call failed as a whole; one text too large fails all of them.
        """
        # Not through `embeddings.create`: its typed decoding makes a Python list of every vector,
        # and costs more than all the rest of a single prediction's way to the server.
        with _translated():
            response = await self._post(
                "/embeddings",
                {"model": model, "input": list(texts), "encoding_format": "base64"},
                {"headers": _UNREAD, "timeout": _PATIENT},
            )
            try:
                data = await response.aread()
            finally:
                await response.aclose()
        return vectors_of(data, len(texts))

    async def get(self, path: str) -> Any:
        """A native route of the server, such as "/props", decoded.

        Raises:
            LLMError: no JSON answer with status 200.
        """
        with _translated():
            return await self._sdk.get(
                self.endpoint.root + path, cast_to=object, options={"timeout": NATIVE_SECONDS}
            )

    async def lines(self, path: str) -> AsyncGenerator[bytes, None]:
        """What a native route tells line by line, as it comes; empty lines are left out.

        Raises:
            LLMError: another status than 200, or the connection broke.
        """
        with _translated():
            response = await self._sdk.get(
                self.endpoint.root + path,
                cast_to=httpx2.Response,
                options={"headers": _UNREAD, "timeout": _PATIENT},
            )
            try:
                read, rest = _read_of(response, READ), b""
                while data := await read():
                    *lines, rest = (rest + data).split(b"\n")
                    for line in filter(None, lines):
                        yield line
            finally:
                await response.aclose()

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


def load_sdk() -> None:
    """Imports the SDK now, where otherwise somebody would wait for that."""
    import openai  # noqa: F401, TID251


@cache
def _sdk_class() -> "type[openai.AsyncOpenAI]":
    from openai import AsyncOpenAI  # noqa: TID251

    class Sdk(AsyncOpenAI):
        """Builds the requests for answers itself: only their bodies differ.

        The SDK puts address and headers together anew each time, which is most of its work.
        """

        def _build_request(
            self, options: "FinalRequestOptions", *, retries_taken: int = 0
        ) -> httpx2.Request:
            if options.url != _CHAT:
                return super()._build_request(options, retries_taken=retries_taken)
            return httpx2.Request(
                "POST",
                self._chat_url,
                headers=self._chat_headers,
                content=_as_json(options.json_data),
                extensions={"timeout": _PATIENT.as_dict()},
            )

        @cached_property
        def _chat_url(self) -> httpx2.URL:
            return httpx2.URL(str(self.base_url).rstrip("/") + _CHAT)

        @cached_property
        def _chat_headers(self) -> httpx2.Headers:
            return httpx2.Headers(
                {
                    "Accept": "application/json",
                    "Content-Type": "application/json",
                    "User-Agent": self.user_agent,
                    **self.auth_headers,
                    **_UNREAD,
                }
            )

    return Sdk


def _as_json(body: Any) -> bytes:
    text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode(errors="replace")  # half of a surrogate pair cannot travel


def _sdk_of(endpoint: Endpoint) -> "openai.AsyncOpenAI":
    # No retries in the SDK: it would repeat what must not be repeated (a prompt that is too
    # long, an overflowed pool). The one policy is `transient` and belongs to the caller.
    return _sdk_class()(
        base_url=endpoint.base_url,
        api_key=endpoint.api_key or "none",
        max_retries=0,
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
        http_client=_http_client(endpoint),
    )


async def _close(clients: dict[Endpoint, Client]) -> None:
    for client in clients.values():
        with suppress(RuntimeError):  # a connection whose transport is gone already
            await client.aclose()


_clients: PerLoop[dict[Endpoint, Client]] = PerLoop(dict, _close)


def client_for(endpoint: Endpoint) -> Client:
    """The client of this server in the running event loop; connections are pooled in it."""
    clients = _clients.get()
    client = clients.get(endpoint)
    if client is None:
        client = clients[endpoint] = Client(endpoint)
    client.endpoint = endpoint  # what is known of the server may be newer
    return client


async def close_clients() -> None:
    """Closes the clients of the running loop, before the loop does so at its end."""
    await _clients.close()


def _http_client(endpoint: Endpoint) -> httpx2.AsyncClient:
    """What carries the requests: our transport, or the SDK's own where a proxy is in between.

    Redirects are not followed: they could carry the key to another server.
    """
    address = urlsplit(endpoint.base_url)
    is_proxied = address.scheme in getproxies() and not proxy_bypass(address.netloc)
    if not is_proxied:
        transport = Transport(gap=GAP_SECONDS, quiet=QUIET_SECONDS, tls=certificates.trusted)
        return httpx2.AsyncClient(transport=transport, follow_redirects=False)
    return httpx2.AsyncClient(verify=certificates.trusted(), follow_redirects=False)


class _translated:
    """Turns what the SDK raises into our errors."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        import openai  # noqa: TID251

        match error:
            case openai.APIStatusError():
                raise classify.error_of(
                    error.status_code, error.body, error.response.headers
                ) from error
            case openai.APITimeoutError() if not isinstance(error.__cause__, httpx2.ConnectTimeout):
                raise errors.Stalled(
                    "The model server did not respond in time. It may be stuck. Check its log."
                ) from error
            case openai.APIConnectionError() if known := _behind(error):
                raise known from error
            case openai.APIConnectionError():
                raise errors.Unreachable(
                    "The model server is not responding. Check that it is running and "
                    "that the address is correct."
                ) from error
            case httpx2.ReadTimeout():
                raise errors.Stalled(
                    "The model server fell silent amid its answer. It may be stuck."
                ) from error
            case httpx2.TransportError():
                raise errors.CutOff(
                    "The connection to the model server was lost before the answer was "
                    "complete. Retry or continue."
                ) from error
            case openai.APIError():
                raise classify.error_of(None, error.body or str(error)) from error


def _behind(error: BaseException) -> errors.LLMError | None:
    """What is known of a connection that could not be made."""
    cause = error.__cause__
    while cause is not None:
        if isinstance(cause, errors.LLMError):
            return cause
        if isinstance(cause, ssl.SSLError):
            return certificates.refused(cause)
        cause = cause.__cause__
    return None


def _after(begun: Begun, request: ChatRequest) -> ChatRequest:
    """The request for the rest of an answer."""
    return request.going_on(begun.text, begun.tokens) if begun.text else request


def _rest_of(request: ChatRequest) -> Rest | None:
    """For what follows a begun answer; None where none was begun, which is nearly always."""
    last = request.messages[-1] if request.messages else None
    return Rest(last["content"]) if last and last["role"] == "assistant" else None


def _parted(event: Event, tags: ThinkTags) -> Iterable[Event]:
    """An event of an answer, a thought in its text told apart."""
    match event:
        case Token():
            return tags.take(event.text)
        case Done():
            return (*tags.end(), event)
    return (event,)


def _new(event: Event, rest: Rest) -> list[Event]:
    """What there is to say of an event of an answer that was begun before."""
    match event:
        case Token():
            return [Token(text)] if (text := rest.take(event.text)) else []
        case Done():
            return [Token(text), event] if (text := rest.end()) else [event]
    return [event]


def _whole(begun: Begun, answer: WholeAnswer, *, is_over: bool = False) -> str:
    """What was there and what has come."""
    rest = Rest(begun.text)
    return begun.text + rest.take("".join(answer.text)) + (rest.end() if is_over else "")


def _keep(begun: Begun, answer: WholeAnswer, response: httpx2.Response) -> None:
    """Adds what was written until now, as far as a server can go on from there."""
    if left := response.extensions.get(LEFT):
        with suppress(errors.LLMError):
            answer.feed(left())
    if answer.reasoning:
        return  # no server goes on from a thought
    # Templates strip what a message ends with: the model writes that once more.
    text = _whole(begun, answer).rstrip()
    if len(text) >= WORTH_CHARACTERS:
        begun.text, begun.tokens = text, begun.tokens + len(answer.text)


def _body_of(request: ChatRequest, *, progress: bool) -> dict[str, Any]:
    body = {
        "model": request.model,
        "messages": request.messages,
        **({} if request.max_tokens is None else {"max_tokens": request.max_tokens}),
        "stream": True,
        "stream_options": {"include_usage": True},
        **({"return_progress": True} if progress else {}),
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
    return body


def _cut_off() -> errors.CutOff:
    return errors.CutOff(
        "The model server closed the connection before the answer was complete. Retry or continue."
    )


def _read_of(response: httpx2.Response, how: str) -> Callable[[], Awaitable[bytes]]:
    """Reads what has come of a body since the last time; b"" at its end.

    Our transport's own, where nothing has to be unpacked: the generators of `aiter_bytes` cost as
    much per token as all the rest of reading.
    """
    read: Callable[[], Awaitable[bytes]] | None = response.extensions.get(how)
    if read is not None and "content-encoding" not in response.headers:
        return read
    pieces = response.aiter_bytes()
    return lambda: anext(pieces, b"")
