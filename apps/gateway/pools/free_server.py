"""Moves a request that waits to a server with a free slot, where that is worth its prompt cache.

How long a slot will take nobody knows. So a conversation waits at its server for as long as another
one would take to read its prompt anew, and then goes where a slot is free: it never waits for more
than twice as long as with knowledge of the future.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress

from redis.exceptions import RedisError

from apps.gateway.program_request import ProgramRequest
from apps.llm.permits import Permit, read_occupancy
from apps.servers.services import Target, slot_terms

CHECK_SECONDS = 1.0
# Who gets a slot within this time is not moved.
AT_ONCE_SECONDS = 0.1
# Of a prompt, which the server is assumed to read at this rate.
TOKENS_PER_SECOND = 500
BYTES_PER_TOKEN = 4
MAX_PREFILL_SECONDS = 20.0
# Who moved waits longer before the next move: each costs the place in the queue.
SECONDS_FOR_MOVE = 5.0


class ServerIsFree(Exception):
    """Another server has a free slot."""

    def __init__(self, target: Target) -> None:
        super().__init__(f"{target.server.name} has a free slot.")
        self.target = target


def patience_of(request: ProgramRequest, moves: int) -> float:
    """Return how long a request waits at its server before it moves, in seconds.

    Args:
        moves: how often it did.
    """
    return _prefill_seconds(request) + moves * SECONDS_FOR_MOVE


def _prefill_seconds(request: ProgramRequest) -> float:
    """Return how long another server would read what this one has in its cache, about."""
    messages = request.fields.get("messages") or request.fields.get("input")
    turns = messages if isinstance(messages, list) else []
    if not any(isinstance(one, dict) and one.get("role") == "assistant" for one in turns):
        return 0.0  # a conversation that begins
    tokens = len(request.body) / BYTES_PER_TOKEN
    return min(tokens / TOKENS_PER_SECOND, MAX_PREFILL_SECONDS)


@asynccontextmanager
async def slot_unless_free_elsewhere(
    slot: AbstractAsyncContextManager[Permit | None], others: Sequence[Target], patience: float
) -> AsyncIterator[Permit | None]:
    """Hold a slot.

    Args:
        others: the servers that the request may go to instead.
        patience: seconds to wait before it may.

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
                search = asyncio.create_task(_search(others, patience, found, limit))
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
    others: Sequence[Target], patience: float, found: list[Target], limit: asyncio.Timeout
) -> None:
    """End the wait as soon as one of the others has a free slot."""
    await asyncio.sleep(max(patience, AT_ONCE_SECONDS))
    with suppress(RedisError):  # it waits where it is
        while not found:
            for target in others:
                if await _has_free_slot(target):
                    found.append(target)
                    limit.reschedule(asyncio.get_running_loop().time())
                    return
            await asyncio.sleep(CHECK_SECONDS)


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
