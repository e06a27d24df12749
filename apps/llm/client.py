"""Requests to one model server: chat, embeddings and the server's own routes.

Every chat request is streamed (a closed stream frees its slot within a token), carries `max_tokens`
where the server is known to count it as llama.cpp does (else a model may write until its context is
full) and asks for progress (so that prompt processing can be interrupted too). The SDK sends the
request; `stream/` reads the event lines, because the SDK's typed decoding costs 0.14 ms of CPU per
token. Exceptions are those of `apps.llm.errors`.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import httpx2
import numpy as np
from numpy.typing import NDArray

from apps.llm import errors
from apps.llm.chat_request import ChatRequest, Completion, Message, PartialCompletion
from apps.llm.endpoint import Endpoint
from apps.llm.events import Done, Event, Token
from apps.llm.failures.request_fields import refused_fields, without
from apps.llm.response_reader import ResponseReader
from apps.llm.stream.continuation import EchoStripper
from apps.llm.stream.sse_reader import ChunkReader, WholeAnswer
from apps.llm.stream.think_tags import ThinkTags
from apps.llm.vectors import decode_vectors
from apps.runtime.per_loop import PerLoop

if TYPE_CHECKING:
    from apps.llm.sdk import AsyncOpenAI

__all__ = [
    "ChatRequest",
    "Client",
    "Completion",
    "Message",
    "PartialCompletion",
    "client_for",
    "close_clients",
    "load_sdk",
]

# Before the first byte a slow machine may process a prompt of tens of thousands of tokens.
FIRST_BYTE_SECONDS = 300.0
NATIVE_SECONDS = 5.0
# A shorter beginning of an answer is generated again: that costs nothing, and what follows could
# begin like it without being an echo of it.
MIN_PARTIAL_CHARACTERS = 20
# A server that refuses one field after the other names them all in this many attempts.
MAX_REFUSED_FIELDS = 12
# A request is repeated on a closed connection only where it was probably reused.
REUSE_SECONDS = 4.0


class Client:
    """One server, seen from one event loop. Get it with `client_for`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._refused: dict[str, frozenset[str]] = {}
        self._last_response = 0.0

    @cached_property
    def _sdk(self) -> "AsyncOpenAI":
        """Created at the first request: a bad address then fails as requests do."""
        from apps.llm.sdk import make_sdk

        return make_sdk(self.endpoint)

    async def aclose(self) -> None:
        if sdk := vars(self).get("_sdk"):
            await sdk.close()

    async def stream_chat(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        """Stream the answer as events. Closing the iterator frees the server's slot at once.

        Where the last message is the assistant's, the answer continues it without repeating it.

        Raises:
            LLMError: the answer is not complete; also after some events.
        """
        finished = False
        filtered = _event_filter(request)
        with _translated():
            response = await self._post_chat(request)
            try:
                chunks, body = ChunkReader(), ResponseReader(response)
                while data := await body.read():
                    for event in chunks.feed(data):
                        finished = finished or isinstance(event, Done)
                        for new in filtered(event):
                            yield new
                for event in chunks.end():
                    finished = finished or isinstance(event, Done)
                    for new in filtered(event):
                        yield new
            finally:
                await response.aclose()
        if not finished:
            raise _cut_off()

    async def complete(
        self, request: ChatRequest, partial: PartialCompletion | None = None
    ) -> Completion:
        """Return the complete answer. It is streamed too, so that cancelling frees the slot.

        Args:
            partial: the beginning of the answer, to continue from; it is part of the result. When
                the request is cancelled, everything received until then is added to it.

        Raises:
            LLMError: the answer is not complete.
        """
        partial = partial or PartialCompletion()
        answer = WholeAnswer()
        with _translated():
            response = await self._post_chat(_continued(request, partial))
            try:
                body = ResponseReader(response)
                while data := await body.read():
                    answer.feed(data)
            except asyncio.CancelledError:
                _extend(partial, answer)
                raise
            finally:
                await response.aclose()
        answer.end()
        if not answer.finish_reason:
            raise _cut_off()
        usage = answer.usage
        if partial.tokens:
            usage = replace(usage, completion_tokens=partial.tokens + usage.completion_tokens)
        text, reasoning = _joined(partial, answer, is_complete=True), "".join(answer.reasoning)
        return Completion(text, reasoning, answer.finish_reason, usage)

    async def embed(self, model: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector per text, in order: (len(texts), dimensions), as the server sent them.

        Raises:
            LLMError: the call failed as a whole; one text too large fails all of them.
        """
        # Not through `embeddings.create`: its typed decoding makes a Python list of every vector,
        # and costs more than all the rest of a single prediction's way to the server.
        body = {"model": model, "input": list(texts), "encoding_format": "base64"}
        with _translated():
            response = await self._post("/embeddings", body)
            try:
                data = await response.aread()
            finally:
                await response.aclose()
        return decode_vectors(data, len(texts))

    async def get(self, path: str) -> Any:
        """Return the decoded answer of one of the server's own routes, such as "/props".

        Raises:
            LLMError: no JSON answer with status 200.
        """
        with _translated():
            return await self._sdk.get(
                self.endpoint.root + path, cast_to=object, options={"timeout": NATIVE_SECONDS}
            )

    async def lines(self, path: str) -> AsyncGenerator[bytes, None]:
        """Yield the lines of one of the server's own routes as they arrive, without empty ones.

        Raises:
            LLMError: another status than 200, or the connection broke.
        """
        with _translated():
            response = await self._stream("GET", self.endpoint.root + path)
            try:
                body, rest = ResponseReader(response), b""
                while data := await body.read():
                    *lines, rest = (rest + data).split(b"\n")
                    for line in filter(None, lines):
                        yield line
            finally:
                await response.aclose()

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """Like `get`, for routes that take a body."""
        with _translated():
            return await self._sdk.post(
                self.endpoint.root + path,
                cast_to=object,
                body=body,
                options={"timeout": NATIVE_SECONDS},
            )

    async def count_tokens(self, model: str, messages: Sequence[Message]) -> int | None:
        """Return the prompt's tokens, chat template included; None where the server cannot count.

        Raises:
            LLMError: the server failed.
        """
        try:
            reply = await self.post(
                "/v1/chat/completions/input_tokens", {"model": model, "messages": list(messages)}
            )
        except (errors.UnknownModel, errors.NotSupported, errors.BadRequest):
            return None
        count = reply.get("input_tokens") if isinstance(reply, dict) else None
        return count if isinstance(count, int) else None

    async def _post_chat(self, request: ChatRequest) -> httpx2.Response:
        """Return the answer's response; its body is still to be read and then to be closed."""
        # Not through `chat.completions.create`: checking every argument against its type takes a
        # millisecond, three times as long as all the rest of the SDK's work.
        return await self._post(
            "/chat/completions", request.body(progress=self.endpoint.tells_progress)
        )

    async def _post(self, path: str, body: Mapping[str, Any]) -> httpx2.Response:
        """Send a request without the fields that this server refuses for the model.

        A server that refuses fields names them: the request is sent again without them, and that
        is remembered.
        """
        model = str(body["model"])
        known = self.endpoint.refuses.get(model, frozenset())
        refused = known | self._refused.get(model, frozenset())
        while True:
            sent = without(body, refused) if refused else body
            try:
                response = await self._stream("POST", path, sent)
            except Exception as error:
                status = getattr(error, "status_code", None)
                if status not in {400, 422} or len(refused) > MAX_REFUSED_FIELDS:
                    raise
                new = refused_fields(status, getattr(error, "body", None), sent)
                if not new:
                    raise
                refused |= new
                continue
            if refused - known:
                self._refused[model] = refused
                if self.endpoint.on_refused is not None:
                    await self.endpoint.on_refused(model, refused)
            return response

    async def _stream(
        self, method: str, url: str, body: Mapping[str, Any] | None = None
    ) -> httpx2.Response:
        """Send a request; return its response, unread.

        A reused connection may be closed by the server in the very moment of its use. The request
        is then sent once more; never after the first byte of an answer.
        """
        from apps.llm import sdk

        loop = asyncio.get_running_loop()
        may_be_reused = loop.time() - self._last_response < REUSE_SECONDS
        while True:
            try:
                stream = await sdk.open_stream(
                    self._sdk, method, url, body, first_byte=FIRST_BYTE_SECONDS
                )
            except Exception as error:
                if not may_be_reused or not sdk.was_disconnected(error):
                    raise
                may_be_reused = False
                continue
            self._last_response = loop.time()
            return stream


def load_sdk() -> None:
    """Import the SDK now, where otherwise the first request would wait for it."""
    import apps.llm.sdk  # noqa: F401


async def _close(clients: dict[Endpoint, Client]) -> None:
    for client in clients.values():
        with suppress(RuntimeError):  # the transport of a connection is closed already
            await client.aclose()


_clients: PerLoop[dict[Endpoint, Client]] = PerLoop(dict, _close)


def client_for(endpoint: Endpoint) -> Client:
    """Return the server's client in the running event loop; its connections are pooled."""
    clients = _clients.get()
    client = clients.get(endpoint)
    if client is None:
        client = clients[endpoint] = Client(endpoint)
    client.endpoint = endpoint  # the facts about the server may be newer
    return client


async def close_clients() -> None:
    """Close the clients of the running loop, before the loop does so at its end."""
    await _clients.close()


class _translated:
    """Turns exceptions of the SDK, httpx and aiohttp into ours."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception) or isinstance(error, errors.LLMError):
            return
        from apps.llm.sdk import translate

        if ours := translate(error):
            raise ours from error


class _event_filter:
    """Turns the events of a request's answer into those that are new to its reader.

    An answer that continues an assistant's message is stripped of its echo; in all others a thought
    inside the text becomes reasoning.
    """

    def __init__(self, request: ChatRequest) -> None:
        last = request.messages[-1] if request.messages else None
        is_continued = last is not None and last["role"] == "assistant"
        self._echo = EchoStripper(last["content"]) if last and is_continued else None
        self._tags = ThinkTags()

    def __call__(self, event: Event) -> Iterable[Event]:
        match event:
            case Token():
                return self._without_echo(event.text) if self._echo else self._tags.feed(event.text)
            case Done() if self._echo:
                return [Token(text), event] if (text := self._echo.end()) else [event]
            case Done():
                return (*self._tags.end(), event)
        return (event,)

    def _without_echo(self, text: str) -> Iterable[Event]:
        assert self._echo is not None
        return [Token(new)] if (new := self._echo.feed(text)) else []


def _continued(request: ChatRequest, partial: PartialCompletion) -> ChatRequest:
    return request.continued_from(partial.text, partial.tokens) if partial.text else request


def _joined(partial: PartialCompletion, answer: WholeAnswer, *, is_complete: bool = False) -> str:
    """The text of the beginning and of the answer that continues it."""
    echo = EchoStripper(partial.text)
    rest = echo.feed("".join(answer.text))
    return partial.text + rest + (echo.end() if is_complete else "")


def _extend(partial: PartialCompletion, answer: WholeAnswer) -> None:
    """Add what was received to the beginning, as far as a server can continue from it."""
    if answer.reasoning:
        return  # no server continues a thought
    # Templates strip the end of a message: the model writes that part again.
    text = _joined(partial, answer).rstrip()
    if len(text) >= MIN_PARTIAL_CHARACTERS:
        partial.text, partial.tokens = text, partial.tokens + len(answer.text)


def _cut_off() -> errors.CutOff:
    return errors.CutOff(
        "The model server closed the connection before the answer was complete. Retry or continue."
    )
