"""Moves a request that waits to a server with a free slot, where that is worth its prompt cache.

How long a slot will take nobody knows. So a conversation waits at its server for as long as another
one would take to read its prompt anew, and then goes where a slot is free: it never waits for more
than twice as long as with knowledge of the future.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

from redis.exceptions import RedisError

from apps.gateway.program_request import ProgramRequest
from apps.llm.permits import Permit, read_occupancy, read_prefill_rate
from apps.servers.services import Target, slot_terms

CHECK_SECONDS = 1.0
# Who gets a slot within this time is not moved.
AT_ONCE_SECONDS = 0.1
# A server that reported no times is assumed to read a prompt at this rate.
TOKENS_PER_SECOND = 500.0
BYTES_PER_TOKEN = 4
MAX_PREFILL_SECONDS = 20.0
# Who moved waits longer before the next move: each costs the place in the queue.
SECONDS_FOR_MOVE = 5.0


class ServerIsFree(Exception):
    """Another server has a free slot."""

    def __init__(self, target: Target) -> None:
        super().__init__(f"{target.server.name} has a free slot.")
        self.target = target


@dataclass(frozen=True, slots=True)
class Move:
    """A request that may go elsewhere while it waits."""

    request: ProgramRequest
    moves: int = 0
    """How often it did."""

    async def patience(self, target: Target) -> float:
        """Return how long it waits at its server before it goes to this one, in seconds."""
        seconds = self.moves * SECONDS_FOR_MOVE
        if not (tokens := self._tokens_to_read):
            return seconds
        measured = await read_prefill_rate(target.server.pk, target.model)
        return seconds + min(tokens / (measured or TOKENS_PER_SECOND), MAX_PREFILL_SECONDS)

    @property
    def _tokens_to_read(self) -> float:
        """The tokens that another server would read and this one has in its cache, about."""
        fields = self.request.fields
        messages = fields.get("messages") or fields.get("input")
        turns = messages if isinstance(messages, list) else []
        if not any(isinstance(one, dict) and one.get("role") == "assistant" for one in turns):
            return 0.0  # a conversation that begins
        return len(self.request.body) / BYTES_PER_TOKEN


@asynccontextmanager
async def slot_unless_free_elsewhere(
    slot: AbstractAsyncContextManager[Permit | None], others: Sequence[Target], move: Move
) -> AsyncIterator[Permit | None]:
    """Hold a slot.

    Args:
        others: the servers that the request may go to instead.

    Raises:
        ServerIsFree: one of the others has a slot, before this one had.
    """
    async with AsyncExitStack() as stack:
        if not others:
            yield await stack.enter_async_context(slot)
            return
        found: list[Target] = []
        try:
            async with asyncio.timeout(None) as limit:
                search = asyncio.create_task(_search(others, move, found, limit))
                try:
                    held = await stack.enter_async_context(slot)
                finally:
                    search.cancel()
        except TimeoutError:
            if not found:
                raise
            raise ServerIsFree(found[0]) from None
        yield held


async def _search(
    others: Sequence[Target], move: Move, found: list[Target], limit: asyncio.Timeout
) -> None:
    """End the wait as soon as another one has a free slot that is worth the prefill there."""
    began = time.monotonic()
    await asyncio.sleep(AT_ONCE_SECONDS)
    with suppress(RedisError):  # it waits where it is
        patience = {target.server.pk: await move.patience(target) for target in others}
        while not found:
            waited = time.monotonic() - began
            for target in others:
                if waited >= patience[target.server.pk] and await _has_free_slot(target):
                    found.append(target)
                    limit.reschedule(asyncio.get_running_loop().time())
                    return
            later = [until - waited for until in patience.values() if until > waited]
            await asyncio.sleep(min([CHECK_SECONDS, *later]))


async def _has_free_slot(target: Target) -> bool:
    terms = slot_terms(target.server, target.model)
    occupancy = await read_occupancy(terms)
    model = target.server.model_id(target.model)
    requests = [*occupancy.held, *occupancy.waiting]
    if target.server.swaps:
        requests = [one for one in requests if target.server.model_id(one.model) == model]
    slots = terms.slots if occupancy.limit is None else occupancy.limit
    # Slots that are left free for people are no reason to move.
    return len(requests) + min(occupancy.people, slots - 1) < slots
