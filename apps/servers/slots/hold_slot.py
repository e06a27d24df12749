"""Holds a server's slot for one request, and records on the server how the request ended."""

import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from apps.llm import errors
from apps.llm.permits import Lane, Permit, SlotTerms, back_off, permit
from apps.servers.models import Server
from apps.servers.observations import record_answer, record_error

# An answer proves that the server works; more often than this it need not be recorded.
ALIVE_SECONDS = 1.0

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
    lane: Lane,
    model: str = "",
    tokens: int = 0,
    label: str = "",
    person: int | None = None,
    owner: int | None = None,
    on_wait: Callable[[], object] | None = None,
) -> AsyncIterator[Permit]:
    """Hold one of a server's slots, and record on the server how the request ended.

    Arguments and errors: see `apps.llm.permits.permit`.
    """
    claim = permit(
        slot_terms(server, model),
        lane=lane,
        tokens=tokens,
        label=label,
        person=person,
        owner=owner,
        on_wait=on_wait,
    )
    async with claim as held:
        try:
            yield held
        except errors.LLMError as error:
            # Before the slot is free again: the refused request counts among those in flight.
            await _record_failure(server, error, model)
            raise
    if held.usage is not None and _is_due(server.pk):
        await record_answer(server)


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
