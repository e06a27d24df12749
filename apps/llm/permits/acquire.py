"""Gives out a server's slots: never more requests in flight than slots, people first.

llama-server does not refuse what it has no slot for, it queues it silently. So every request of
ours, from whichever process, first acquires a permit. Redis has one entry for each permit; the Lua
scripts of this folder decide, each in one atomic step. A process that dies stops renewing, and its
permits lapse.

A person who finds all slots busy gets the slot of the youngest row that can go on later where it
was, else of the youngest: the row's holder is notified, closes the stream, and gets `SlotTaken`.
While people are active on a server, rows leave as many slots free as there are people, so that the
next question finds one. In every lane people take turns: someone with many requests gets one slot
before others get their first, and no more.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Unpack

from redis.exceptions import RedisError

from apps.llm import errors
from apps.llm.permits.keys import permit_key
from apps.llm.permits.permit import Permit, new_permit
from apps.llm.permits.permit_holder import PermitHolder, permit_holder
from apps.llm.permits.terms import Lane, ModelInUse, NoSlot, SlotRequest, SlotTaken, SlotTerms
from apps.llm.permits.wait_reason import parse_backoff, requests_before

logger = logging.getLogger(__name__)

# A request that waits asks this often what is known of the server now.
TERMS_SECONDS = 1.0
NewTerms = Callable[[], Awaitable[SlotTerms]]

# A person waits this long for a Redis that is away; then the request goes without a permit.
REDIS_SECONDS = 2.0


@asynccontextmanager
async def permit(
    terms: SlotTerms,
    *,
    on_wait: Callable[[], object] | None = None,
    new_terms: NewTerms | None = None,
    **request: Unpack[SlotRequest],
) -> AsyncIterator[Permit]:
    """Hold one slot of a server; wait for it as long as it takes.

    Args:
        on_wait: called once if no slot is free at once.
        new_terms: asked every second while the request waits.

    Raises:
        SlotTaken: from the body, in the lanes BATCH and IDLE.
        ModelInUse: in the lanes AGENT and BATCH; try again later, or go on with another model.
        NoSlot: in the lane IDLE, unless it waits.
        Busy: in the lanes INTERACTIVE and AGENT, while the server is paused after a refusal.
        RedisError: Redis is away, but in the lane INTERACTIVE, whose requests go all the same.
    """
    holder, held = permit_holder(), new_permit(terms, request)
    try:
        await _Acquisition(holder, held, request["lane"], terms, new_terms, on_wait).acquire()
        with _revocable(held):
            holder.register(held)
            yield held
    finally:
        # Shielded: the slot is free again also when the holder was cancelled, by Stop for instance.
        await asyncio.shield(holder.release(held))


@contextmanager
def _revocable(held: Permit) -> Iterator[None]:
    """Raise SlotTaken where the task was cancelled because a person takes the slot."""
    task = asyncio.current_task()
    assert task is not None
    cancelled_before = task.cancelling()
    try:
        yield
    except asyncio.CancelledError:
        if held.revoked and task.uncancel() <= cancelled_before:
            raise SlotTaken from None
        raise


@dataclass(slots=True)
class _Acquisition:
    """One request on its way to a slot."""

    holder: PermitHolder
    permit: Permit
    lane: Lane
    terms: SlotTerms
    new_terms: NewTerms | None
    on_wait: Callable[[], object] | None
    """None also after it was called."""

    async def acquire(self) -> None:
        """Return when the slot is given; a person's request goes also while Redis is away."""
        if self.lane is not Lane.INTERACTIVE:
            self.permit.holder = asyncio.current_task()
            await self.holder.subscribe(self.permit.server_id)  # not to miss that it is revoked
            await self._wait_for_slot()
            return
        try:
            await self._wait_for_slot(redis_seconds=REDIS_SECONDS)
        except (RedisError, OSError, TimeoutError) as error:
            logger.warning("A request goes without a permit, Redis does not answer: %s", error)

    async def _wait_for_slot(self, *, redis_seconds: float | None = None) -> None:
        """Ask until the slot is given.

        Args:
            redis_seconds: the limit for each answer of Redis, not for the wait.
        """
        known_at = time.monotonic()
        with self.holder.waiters.add(self.permit) as waiter:
            while True:
                if self.new_terms and time.monotonic() - known_at >= TERMS_SECONDS:
                    self.terms, known_at = await self.new_terms(), time.monotonic()
                waiter.woken.clear()
                async with asyncio.timeout(redis_seconds):
                    refusal = await self._ask()
                if not refusal:
                    return
                _raise_for(refusal, self.lane, waits=self.permit.waits)
                waiter.rank = requests_before(refusal)
                if not await self._report_wait():
                    await waiter.wait()

    async def _ask(self) -> str:
        """Return why there is no slot now; "" if the permit is granted."""
        permit, scope = self.permit, self.terms.scope
        permit.claim = json.dumps(json.loads(permit.claim) | {"scope": scope})
        parts = ("", "people", f"limit:{scope}", "models", f"turns:{scope}", f"prefixes:{scope}")
        models = ("model-uses", "model-waits")
        keys = [permit_key(permit.server_id, part) for part in (*parts, *models)]
        arguments = [permit.name, permit.claim, json.dumps(self.terms.as_arguments())]
        refusal: bytes = await self.holder.acquire(keys=keys, args=arguments)
        return refusal.decode()

    async def _report_wait(self) -> bool:
        """Tell the caller once that the request waits, from where no message can be missed.

        Returns:
            True if a message may have been missed meanwhile: it is to be asked for again.
        """
        on_wait, self.on_wait = self.on_wait, None
        if on_wait is not None:
            on_wait()
        was_unsubscribed = await self.holder.subscribe(self.permit.server_id)
        return was_unsubscribed or on_wait is not None


def _raise_for(refusal: str, lane: Lane, *, waits: bool) -> None:
    """Raise where this lane does not wait after such a refusal."""
    if lane is Lane.IDLE and not waits:
        raise NoSlot
    if lane in {Lane.AGENT, Lane.BATCH} and refusal.startswith("model:"):
        raise ModelInUse(refusal.removeprefix("model:"))
    if lane in {Lane.INTERACTIVE, Lane.AGENT} and refusal.startswith("limit:"):
        seconds, reason = parse_backoff(refusal)
        raise errors.Busy(reason, seconds)
