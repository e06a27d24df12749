"""Sends a program's request to a model server when it has a slot, and its answer back as it is."""

import asyncio
import time
from contextlib import AbstractAsyncContextManager, nullcontext

from django.contrib.auth.models import User
from redis.exceptions import RedisError

from apps.core.models import ApiKey
from apps.gateway.answer import Answer
from apps.gateway.continuing.count import Asked
from apps.gateway.continuing.draft import Draft
from apps.gateway.errors import GatewayError, error_event, from_model_server
from apps.gateway.limits.answers import allowed_targets
from apps.gateway.pools.free_server import Move, ServerIsFree, slot_unless_free_elsewhere
from apps.gateway.program_request import ProgramRequest
from apps.gateway.routes import upstream_url
from apps.gateway.targets import Pool, find_targets
from apps.gateway.usage.reported import TAIL_BYTES, is_only_thought, usage_in
from apps.llm import errors
from apps.llm.client import RawAnswer, refused_answer
from apps.llm.permits import Lane, ModelInUse, Permit, SlotTaken
from apps.servers.models import Server
from apps.servers.services import Target, hold_slot

# Work that nobody waits for asks this often whether its model may be loaded.
ASK_AGAIN_SECONDS = 0.5
# An answer of a lane that gives its slot back is sent when it is complete.
MAX_KEPT_BYTES = 64 * 1024 * 1024
EVENTS = "text/event-stream"
# A server that refuses the workbench's own key: the program's key is not what is wrong.
_NOT_THEIRS = frozenset({401, 403})


async def relay(
    request: ProgramRequest, key: ApiKey, servers: list[Server], answer: Answer
) -> None:
    """Answer a request; waits for a slot as long as it takes.

    Args:
        servers: all there are.

    Raises:
        GatewayError: there is no answer, and nothing was sent.
    """
    pool = Pool(allowed_targets(await find_targets(request, servers), key))
    draft = Draft(request) if request.lane.gives_way else None
    while True:
        try:
            await _try(pool, request, key, answer, draft)
            pool.record_success()
            return
        except SlotTaken:
            assert draft is not None
            await draft.keep()
        except ServerIsFree as other:
            pool.move_to(other.target)
        except ModelInUse:
            await asyncio.sleep(ASK_AGAIN_SECONDS)
        except errors.LLMError as error:
            if draft is not None and draft.gave_up(error):
                continue
            if answer.has_begun:
                await _break_off(answer, error, request)
                return
            pause = pool.next_pause(error)
            if pause is None:
                await _refuse(answer, error)
                return
            await asyncio.sleep(pause.seconds)
        except RedisError as error:
            detail = "The workbench's Redis does not answer. Try again in a moment."
            raise GatewayError(503, "no_redis", detail, retry_after=2) from error


async def _try(
    pool: Pool, request: ProgramRequest, key: ApiKey, answer: Answer, draft: Draft | None
) -> None:
    target, move = pool.target, Move(request, pool.moves)
    endpoint = target.server.endpoint
    url = upstream_url(request.path, endpoint.root, endpoint.base_url)
    asked = Asked(target.client, target.model, target.server.continues_messages)
    loses_work = draft is not None and not draft.goes_on_at(asked)
    slot = _slot(target, request, key, loses_work=loses_work)
    async with slot_unless_free_elsewhere(slot, pool.others, move) as held:
        sent_at = time.perf_counter()
        answer.record.start(target.model)
        body = draft.body_for(asked) if draft else request.body_for(target.model)
        is_whole = not (request.is_streamed or (draft and draft.is_rewritten))
        raw = await target.client.open_raw(url, body, request.headers, whole=is_whole)
        try:
            first = await raw.read()  # until the first byte another server may answer
            if draft is not None:
                draft.begin()
            if held is not None and request.is_streamed:
                held.first_token_ms = (time.perf_counter() - sent_at) * 1000
            if draft is None:
                tail = await _pass_on(first, raw, answer)
            else:
                await collect(first, raw, draft.pieces)
                tail = b"".join(draft.pieces)[-TAIL_BYTES:]
        finally:
            await raw.aclose()
        if held is not None and (usage := usage_in(tail, first)):
            held.record_usage(usage, is_only_thought=is_only_thought(tail, first))
    if draft is not None:  # the slot is free: nobody takes an answer back that has begun
        await _send(draft, raw, answer)


async def _send(draft: Draft, raw: RawAnswer, answer: Answer) -> None:
    """Send a complete answer."""
    pieces = await draft.finish()
    answer.restarts, answer.continued = draft.restarts, draft.continued
    await answer.forward(raw.status, {**raw.headers, **draft.headers})
    for piece in pieces:
        await answer.write(piece)
    await answer.end()


def _slot(
    target: Target, request: ProgramRequest, key: ApiKey, *, loses_work: bool
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
        share=str(key.pk),
        prefix=request.prefix,
        request=request.id,
        waits=True,
        loses_work=loses_work,
    )


async def _pass_on(data: bytes, raw: RawAnswer, answer: Answer) -> bytes:
    """Send the answer as it comes; return its end.

    Args:
        data: its first piece.
    """
    tail = b""
    answer.is_events = raw.headers.get("content-type", "").startswith(EVENTS)
    await answer.forward(raw.status, raw.headers)
    while data:
        await answer.write(data)
        tail = (tail + data)[-TAIL_BYTES:]
        data = await raw.read()
    await answer.end()
    return tail


async def collect(data: bytes, raw: RawAnswer, pieces: list[bytes]) -> None:
    """Add the pieces of a whole answer to a list, as they come.

    Args:
        data: its first piece.

    Raises:
        LLMError: it does not come, or is too long.
    """
    size = 0
    while data:
        size += len(data)
        if size > MAX_KEPT_BYTES:
            raise errors.ServerFailed("The answer is longer than 64 MiB. Ask for less at once.")
        pieces.append(data)
        data = await raw.read()


async def _refuse(answer: Answer, error: errors.LLMError) -> None:
    """Tell a program why there is no answer: in the server's own bytes where it gave some."""
    refused = refused_answer(error)
    if refused is None or refused.status in _NOT_THEIRS:
        raise from_model_server(error) from error
    await answer.forward(refused.status, refused.headers)
    await answer.end(refused.body)


async def _break_off(answer: Answer, error: errors.LLMError, request: ProgramRequest) -> None:
    """End an answer that cannot be completed: as an event, else by closing the connection."""
    answer.record.has_failed = True
    if answer.is_events:
        await answer.end(error_event(from_model_server(error), request.route.dialect))
