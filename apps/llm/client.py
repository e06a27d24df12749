"""Requests to one model server: chat, embeddings and the server's own routes.

Every chat request is streamed (a closed stream frees its slot within a token), carries `max_tokens`
where the server is known to count it as llama.cpp does (else a model may write until its context is
full) and asks for progress (so that prompt processing can be interrupted too). The SDK sends the
request; `stream/` reads the event lines, because the SDK's typed decoding costs 0.14 ms of CPU per
token. Exceptions are those of `apps.llm.errors`.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import httpx2
import numpy as np
from numpy.typing import NDArray

from apps.llm import errors, timeouts
from apps.llm.chat_request import ChatRequest, Completion, Message, SentCall, SentFunction
from apps.llm.endpoint import Endpoint
from apps.llm.events import Done, Event, Started
from apps.llm.failures.classify import classify_failure
from apps.llm.raw_answer import RawAnswer, refused_answer
from apps.llm.stream.event_filter import EventFilter
from apps.llm.stream.partial_completion import PartialCompletion
from apps.llm.stream.sse_reader import ChunkReader, WholeAnswer
from apps.llm.stream.usage import estimate_usage
from apps.llm.transport.connection import ServerConnection, translated_errors
from apps.llm.vectors import decode_vectors
from apps.runtime.per_loop import PerLoop

__all__ = [
    "ChatRequest",
    "Client",
    "Completion",
    "Message",
    "PartialCompletion",
    "RawAnswer",
    "SentCall",
    "SentFunction",
    "classify_failure",
    "client_for",
    "close_clients",
    "load_sdk",
    "refused_answer",
]


OLLA_SESSION = "X-Olla-Session-ID"


class Client(ServerConnection):
    """One server, seen from one event loop. Get it with `client_for`."""

    async def stream_chat(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        """Stream the answer as events. Closing the iterator frees the server's slot at once.

        Where the last message is the assistant's, the answer continues it without repeating it.

        Raises:
            LLMError: the answer is not complete; also after some events.
        """
        finished = False
        filtered = EventFilter(request)
        with translated_errors():
            response = await self._open_chat(request)
            try:
                chunks, body = ChunkReader(), self._reader(response)
                is_controlled = "reasoning_control" in request.params
                while data := await body.read():
                    new_events = chunks.feed(data)
                    if is_controlled and chunks.completion_id:
                        is_controlled = False
                        yield Started(chunks.completion_id)
                    for event in new_events:
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
        with translated_errors():
            response = await self._open_chat(partial.rest_of(request))
            try:
                body = self._reader(response)
                while data := await body.read():
                    answer.feed(data)
            except asyncio.CancelledError:
                partial.extend(answer)
                raise
            finally:
                await response.aclose()
        answer.end()
        if not answer.finish_reason:
            raise _cut_off()
        usage = answer.usage or estimate_usage(request, answer.text, answer.reasoning)
        if partial.tokens:
            usage = replace(usage, completion_tokens=partial.tokens + usage.completion_tokens)
        text, reasoning = partial.joined_with(answer, is_complete=True), "".join(answer.reasoning)
        return Completion(text, reasoning, answer.finish_reason, usage)

    async def open_raw(
        self, url: str, body: bytes, headers: Mapping[str, str], *, whole: bool = False
    ) -> RawAnswer:
        """Send another program's request as it is; return the answer, unread. Close it.

        Args:
            url: the whole address.
            headers: to be sent, beside those of every request and before them.
            whole: the server answers when the answer is complete, which may take an hour.

        Raises:
            LLMError: no answer with status 200; see `refused_answer`.
        """
        first_byte = timeouts.WHOLE_ANSWER_SECONDS if whole else timeouts.FIRST_BYTE_SECONDS
        with translated_errors():
            response = await self._open("POST", url, body, headers, first_byte)
            return RawAnswer(response, self._reader(response))

    async def embed(self, model: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector per text, in order: (len(texts), dimensions), as the server sent them.

        Raises:
            LLMError: the call failed as a whole; one text too large fails all of them.
        """
        # Not through `embeddings.create`: its typed decoding makes a Python list of every vector,
        # and costs more than all the rest of a single prediction's way to the server.
        body = {"model": model, "input": list(texts), "encoding_format": "base64"}
        with translated_errors():
            response = await self.open_post("/embeddings", body)
            try:
                data = await self._reader(response).read_all()
            finally:
                await response.aclose()
        return decode_vectors(data, len(texts))

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

    async def end_thinking(self, completion_id: str, model: str) -> bool:
        """End the thought of a running answer; False if the server cannot.

        Args:
            completion_id: from the answer's `Started`.
        """
        body = {"id": completion_id, "action": "reasoning_end", "model": model}
        try:
            reply = await self.post("/v1/chat/completions/control", body)
        except errors.LLMError:
            return False
        return isinstance(reply, dict) and reply.get("success") is True

    async def _open_chat(self, request: ChatRequest) -> httpx2.Response:
        """Return the answer's response; its body is still to be read and then to be closed."""
        # Not through `chat.completions.create`: checking every argument against its type takes a
        # millisecond, three times as long as all the rest of the SDK's work.
        return await self.open_post(
            "/chat/completions",
            request.body(progress=self.endpoint.tells_progress),
            headers={OLLA_SESSION: request.session} if request.session else {},
        )


def load_sdk() -> None:
    """Import the SDK now, where otherwise the first request would wait for it."""
    import apps.llm.transport.sdk  # noqa: F401


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


def _cut_off() -> errors.CutOff:
    return errors.CutOff(errors.CUT_OFF)
