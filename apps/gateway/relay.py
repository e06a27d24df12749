"""Sends a program's request to a model server when it has a slot, and its answer back as it is."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from redis.exceptions import RedisError

from apps.core.models import ApiKey
from apps.gateway.errors import GatewayError, error_body, error_headers, from_model_server
from apps.gateway.program_request import ProgramRequest
from apps.gateway.routes import Dialect, upstream_url
from apps.gateway.targets import find_targets
from apps.gateway.usage import TAIL_BYTES, usage_in
from apps.llm import errors
from apps.llm.client import RawAnswer, refused_answer
from apps.llm.permits import Lane, ModelInUse, NoSlot, Permit, SlotTaken
from apps.servers.models import Server
from apps.servers.services import RetryPolicy, Target, hold_slot

Send = Callable[[dict[str, Any]], Awaitable[None]]

# Work that nobody waits for asks this often whether there is a slot for it.
ASK_AGAIN_SECONDS = 0.5
# An answer of a lane that gives its slot back is sent when it is complete.
MAX_KEPT_BYTES = 64 * 1024 * 1024
EVENTS = "text/event-stream"
# A server that refuses the workbench's own key: the program's key is not what is wrong.
_NOT_THEIRS = frozenset({401, 403})
_DROPPED = frozenset(
    {
        *("alt-svc", "connection", "content-encoding", "content-length", "date", "keep-alive"),
        *("server", "set-cookie", "strict-transport-security", "trailer", "transfer-encoding"),
        *("upgrade", "via"),
    }
)


@dataclass
class Answer:
    """What goes to the program."""

    send: Send
    has_begun: bool = False
    is_events: bool = False
    has_ended: bool = False
    """All of it was handed to the web server."""

    async def begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.has_begun = True
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, data: bytes) -> None:
        await self.send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        self.has_ended = True
        await self.send({"type": "http.response.body", "body": data})


async def relay(
    request: ProgramRequest, key: ApiKey, servers: list[Server], answer: Answer
) -> None:
    """Answer a request; waits for a slot as long as it takes.

    Args:
        servers: all there are.

    Raises:
        GatewayError: there is no answer, and nothing was sent.
    """
    targets = await find_targets(request, servers)
    policy = RetryPolicy(targets[0].server)
    while True:
        try:
            await _try(targets[0], request, key, answer)
            return
        except (SlotTaken, NoSlot, ModelInUse):
            await asyncio.sleep(ASK_AGAIN_SECONDS)
        except errors.LLMError as error:
            if answer.has_begun:
                await _break_off(answer, error, request)
                return
            if isinstance(error, errors.Unreachable) and len(targets) > 1:
                targets = targets[1:]
                policy = RetryPolicy(targets[0].server)
                continue
            pause = policy.next_pause(error, has_begun=False)
            if pause is None:
                await _refuse(answer, error)
                return
            await asyncio.sleep(pause.seconds)
        except RedisError as error:
            detail = "The workbench's Redis does not answer. Try again in a moment."
            raise GatewayError(503, "no_redis", detail, retry_after=2) from error


async def _try(target: Target, request: ProgramRequest, key: ApiKey, answer: Answer) -> None:
    endpoint = target.server.endpoint
    url = upstream_url(request.path, endpoint.root, endpoint.base_url)
    async with _slot(target, request, key) as held:
        sent_at = time.perf_counter()
        raw = await target.client.open_raw(
            url, request.body_for(target.model), request.headers, whole=not request.is_streamed
        )
        try:
            first = await raw.read()  # until the first byte another server may answer
            if held is not None and request.is_streamed:
                held.first_token_ms = (time.perf_counter() - sent_at) * 1000
            if request.lane is Lane.INTERACTIVE:
                tail = await _pass_on(first, raw, answer)
            else:
                pieces = await _collect(first, raw)
                tail = b"".join(pieces)[-TAIL_BYTES:]
        finally:
            await raw.aclose()
        if held is not None and (usage := usage_in(tail)):
            held.record_usage(usage)
    if request.lane is Lane.INTERACTIVE:
        return
    # The slot is free: nobody takes an answer back that has begun.
    await answer.begin(raw.status, _headers(raw.headers))
    for piece in pieces:
        await answer.write(piece)
    await answer.end()


def _slot(
    target: Target, request: ProgramRequest, key: ApiKey
) -> AbstractAsyncContextManager[Permit | None]:
    if not request.route.needs_slot:
        return nullcontext()
    user: User = key.user
    return hold_slot(
        target.server,
        lane=request.lane,
        model=target.model,
        tokens=request.token_bound,
        label=f"{request.program} · key {key.name}",
        person=user.pk if request.lane is Lane.INTERACTIVE else None,
        owner=user.pk,
    )


async def _pass_on(data: bytes, raw: RawAnswer, answer: Answer) -> bytes:
    """Send the answer as it comes; return its end.

    Args:
        data: its first piece.
    """
    tail = b""
    answer.is_events = raw.headers.get("content-type", "").startswith(EVENTS)
    await answer.begin(raw.status, _headers(raw.headers))
    while data:
        await answer.write(data)
        tail = (tail + data)[-TAIL_BYTES:]
        data = await raw.read()
    await answer.end()
    return tail


async def _collect(data: bytes, raw: RawAnswer) -> list[bytes]:
    pieces, size = [], 0
    while data:
        size += len(data)
        if size > MAX_KEPT_BYTES:
            raise errors.ServerFailed("The answer is longer than 64 MiB. Ask for less at once.")
        pieces.append(data)
        data = await raw.read()
    return pieces


async def _refuse(answer: Answer, error: errors.LLMError) -> None:
    """Tell a program why there is no answer: in the server's own bytes where it gave some."""
    refused = refused_answer(error)
    if refused is None or refused.status in _NOT_THEIRS:
        raise from_model_server(error) from error
    await answer.begin(refused.status, _headers(refused.headers))
    await answer.end(refused.body)


async def _break_off(answer: Answer, error: errors.LLMError, request: ProgramRequest) -> None:
    """End an answer that cannot be completed: as an event, else by closing the connection."""
    if answer.is_events:
        said = error_body(from_model_server(error), request.route.dialect)
        await answer.end(b"data: " + said + b"\n\n")


def _headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return list(_forwarded(headers))


def _forwarded(headers: Mapping[str, str]) -> Iterator[tuple[bytes, bytes]]:
    for name, value in headers.items():
        lower = name.lower()
        if lower not in _DROPPED and not lower.startswith("access-control-"):
            yield lower.encode("latin-1"), value.encode("latin-1")
    yield b"cache-control", b"no-store"
    yield b"x-accel-buffering", b"no"  # a reverse proxy in front passes pieces on as they come


async def refuse(answer: Answer, error: GatewayError, dialect: Dialect) -> None:
    """Send an error of the gateway's own."""
    await answer.begin(error.status, error_headers(error))
    await answer.end(error_body(error, dialect))
