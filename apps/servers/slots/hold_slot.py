"""Holds a server's slot for one request, and records on the server how the request ended."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Unpack

from django.db import DatabaseError

from apps.llm import errors
from apps.llm.permits import Permit, SlotRequest, SlotTerms, back_off, permit
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.observations import record_answer, record_error

# An answer proves that the server works; more often than this it need not be recorded.
ALIVE_SECONDS = 1.0

# A person's place in the queue lapses soon after.
READ_SECONDS = 1.0

_alive_at: dict[int, float] = {}


def slot_terms(server: Server, model: str = "") -> SlotTerms:
    """The slots that a request for this model may use, by the server's facts."""
    return SlotTerms(
        server_id=server.pk,
        model=model,
        scope=server.slot_scope(model),
        slots=server.slots_of(model),
        pool=server.pool(model),
        swaps=server.swaps,
        is_loaded=server.model_id(model) in server.loaded_models,
        loaded_models=tuple(server.loaded_models) if server.swaps else (),
        models_at_once=server.models_at_once,
        is_listed=not server.model_facts or server.model(model) is not None,
    )


@asynccontextmanager
async def hold_slot(
    server: Server,
    *,
    model: str = "",
    on_wait: Callable[[], object] | None = None,
    latest: Callable[[], Server] | None = None,
    **request: Unpack[SlotRequest],
) -> AsyncIterator[Permit]:
    """Hold one of a server's slots, and record on the server how the request ended.

    A request that waits follows what people change meanwhile: `server` then has its new address,
    key and width.

    Args:
        latest: the server as it is now, from a caller who reads that anyway; `server` stays.

    Other arguments and errors: see `permit` and `SlotRequest` in `apps.llm.permits`.
    """
    claim = permit(
        slot_terms(server, model),
        on_wait=on_wait,
        new_terms=lambda: _new_terms(server, model, latest),
        **request,
    )
    # Failures are recorded before the slot is free again: a refused request counts among those in
    # flight.
    async with claim as held, _records_failure(server, model, held):
        yield held
    if held.usage is not None and _is_due(server.pk):
        await record_answer(server)


@asynccontextmanager
async def _records_failure(server: Server, model: str, held: Permit) -> AsyncIterator[None]:
    began = time.monotonic()
    try:
        yield
    except errors.LLMError as error:
        held.failed = True
        if isinstance(error, errors.ProxyTimeout | errors.CutOff):
            held.cut_off_after = time.monotonic() - began
        if isinstance(error, errors.PromptTooLong):
            held.too_long_tokens = error.tokens or 0
        await _record_failure(server, error, model)
        raise


async def _new_terms(server: Server, model: str, latest: Callable[[], Server] | None) -> SlotTerms:
    if latest is not None:
        return slot_terms(latest(), model)
    await _update(server)
    return slot_terms(server, model)


async def _update(server: Server) -> None:
    """Bring a server in step with the database; as it was where that does not answer."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            stored = await in_db(Server.objects.filter(pk=server.pk).first)
    except (DatabaseError, TimeoutError):
        return
    if stored is not None:  # else removed
        for field in Server._meta.concrete_fields:
            setattr(server, field.attname, getattr(stored, field.attname))


async def _record_failure(server: Server, error: errors.LLMError, model: str) -> None:
    was_counted = server.pool(model) is not None
    await record_error(server, error, model)
    # The first overflow shows the size of the cache: from then on tokens are counted. One that
    # comes in spite of that shows that prompts are longer than estimated.
    if isinstance(error, errors.Busy) or (
        isinstance(error, errors.PoolExhausted) and (was_counted or not server.pool(model))
    ):
        await back_off(slot_terms(server, model), error)


def _is_due(server_id: int) -> bool:
    now = time.monotonic()
    if now - _alive_at.get(server_id, -math.inf) < ALIVE_SECONDS:
        return False
    _alive_at[server_id] = now
    return True
