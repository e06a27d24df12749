"""Gives out a server's slots: never more requests in flight than slots, people first.

llama-server does not refuse what it has no slot for, it queues it silently. So every request of
ours, from whichever process, first acquires a permit. Redis has one entry for each permit; the Lua
scripts of this folder decide, each in one atomic step. A process that dies stops renewing, and its
permits lapse.

A person who finds all slots busy gets the slot of the youngest row: the row's holder is notified,
closes the stream, and gets `SlotTaken`. While people are active on a server, rows leave as many
slots free as there are people, so that the next question finds one. People take turns: someone
with many questions gets one slot before others get their first, and no more.
"""

import asyncio
import json
import logging
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from redis.exceptions import RedisError

from apps.llm import errors
from apps.llm.permits.keys import permit_key
from apps.llm.permits.permit import Permit
from apps.llm.permits.permit_holder import PermitHolder, permit_holder
from apps.llm.permits.terms import Lane, ModelInUse, NoSlot, SlotTaken, SlotTerms
from apps.llm.permits.wait_reason import parse_backoff, people_before

logger = logging.getLogger(__name__)

# Should the message that a slot is free be lost, a waiter asks again after this; it is also how
# soon rows notice that nobody is active any more.
POLL_SECONDS = 0.25
# The same for people with many before them; sooner than WAITER_SECONDS, or they would have left.
FAR_POLL_SECONDS = 1.0
# A request that waits asks this often what is known of the server now.
TERMS_SECONDS = 1.0
NewTerms = Callable[[], Awaitable[SlotTerms]]

# A person waits this long for a Redis that is away; then the request goes without a permit.
REDIS_SECONDS = 2.0
# A server that refuses and does not say for how long is paused for the first of these, and for
# twice as long after each refusal that follows.
FIRST_PAUSE_SECONDS = 1.0
LAST_PAUSE_SECONDS = 60.0


@asynccontextmanager
async def permit(
    terms: SlotTerms,
    *,
    lane: Lane,
    tokens: int = 0,
    label: str = "",
    person: int | None = None,
    owner: int | None = None,
    on_wait: Callable[[], object] | None = None,
    new_terms: NewTerms | None = None,
) -> AsyncIterator[Permit]:
    """Hold one slot of a server; wait for it as long as it takes.

    Args:
        tokens: the most that prompt and answer may come to. Counts where the requests in flight
            share one context (a unified KV cache): together they must not outgrow it.
        label: the text for the Servers page, such as the name of a job.
        person: the user who waits; people who are active have slots left free for them.
        owner: the user whose work it is, who may see the label.
        on_wait: called once if no slot is free at once.
        new_terms: asked every second while the request waits.

    Raises:
        SlotTaken: from the body, in the lanes BATCH and IDLE.
        ModelInUse: in the lane BATCH; try again later, or go on with another model meanwhile.
        NoSlot: in the lane IDLE.
        Busy: in the lane INTERACTIVE, while the server is paused after a refusal.
        RedisError: Redis is away, in the lanes BATCH and IDLE. People's requests go all the same.
    """
    held = _new_permit(terms, lane, tokens=tokens, label=label, person=person, owner=owner)
    holder = permit_holder()
    try:
        await _acquire_in_lane(holder, held, terms, lane, on_wait, new_terms)
        with _revocable(held):
            holder.register(held)
            yield held
    finally:
        # Shielded: the slot is free again also when the holder was cancelled, by Stop for instance.
        await asyncio.shield(holder.release(held))


def _new_permit(
    terms: SlotTerms, lane: Lane, *, tokens: int, label: str, person: int | None, owner: int | None
) -> Permit:
    person_name = str(person or "somebody") if lane is Lane.INTERACTIVE else ""
    claim = {
        "lane": lane,
        "scope": terms.scope,
        "model": terms.model,
        "label": label,
        "owner": owner or person or 0,
        "person": person_name,
        "tokens": min(tokens, terms.pool) if terms.pool else tokens,
    }
    return Permit(uuid.uuid4().hex, terms.server_id, json.dumps(claim), person_name)


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


async def _acquire_in_lane(
    holder: PermitHolder,
    held: Permit,
    terms: SlotTerms,
    lane: Lane,
    on_wait: Callable[[], object] | None,
    new_terms: NewTerms | None,
) -> None:
    """Acquire as `_acquire`; a person's request goes also while Redis is away."""
    if lane is not Lane.INTERACTIVE:
        held.holder = asyncio.current_task()
        await _acquire(holder, held, terms, lane, on_wait, new_terms)
        return
    try:
        # A person who waits for a slot has an answer of Redis: this is not the limit for that.
        await _acquire(
            holder,
            held,
            terms,
            lane,
            on_wait,
            new_terms,
            redis_seconds=REDIS_SECONDS,
        )
    except (RedisError, OSError, TimeoutError) as error:
        logger.warning("A request goes without a permit, Redis does not answer: %s", error)


async def _acquire(
    holder: PermitHolder,
    held: Permit,
    terms: SlotTerms,
    lane: Lane,
    on_wait: Callable[[], object] | None,
    new_terms: NewTerms | None,
    *,
    redis_seconds: float | None = None,
) -> None:
    server_id, known_at = held.server_id, time.monotonic()
    if lane is not Lane.INTERACTIVE:
        await holder.subscribe(server_id)  # not to miss that the permit is revoked
    with holder.waiting(held) as waiter:
        while True:
            if new_terms is not None and time.monotonic() - known_at >= TERMS_SECONDS:
                terms, known_at = await new_terms(), time.monotonic()
            waiter.woken.clear()
            async with asyncio.timeout(redis_seconds):
                refusal = await _ask(holder, held, terms)
            if not refusal:
                return
            _raise_for(refusal, lane)
            waiter.rank = people_before(refusal)
            if on_wait is not None:
                on_wait()
                on_wait = None
                await holder.subscribe(server_id)
                continue
            await holder.subscribe(server_id)
            with suppress(TimeoutError):
                async with asyncio.timeout(FAR_POLL_SECONDS if waiter.is_far else POLL_SECONDS):
                    await waiter.woken.wait()


async def _ask(holder: PermitHolder, held: Permit, terms: SlotTerms) -> str:
    """Return why there is no slot now; "" if the permit is granted."""
    held.claim = json.dumps(json.loads(held.claim) | {"scope": terms.scope})
    parts = ("", "people", f"limit:{terms.scope}", "models", f"turns:{terms.scope}")
    keys = [permit_key(held.server_id, part) for part in parts]
    arguments = [held.name, held.claim, json.dumps(terms.as_arguments())]
    refusal: bytes = await holder.acquire(keys=keys, args=arguments)
    return refusal.decode()


def _raise_for(refusal: str, lane: Lane) -> None:
    """Raise where this lane does not wait after such a refusal."""
    if lane is Lane.IDLE:
        raise NoSlot
    if lane is Lane.BATCH and refusal.startswith("model:"):
        raise ModelInUse(refusal.removeprefix("model:"))
    if lane is Lane.INTERACTIVE and refusal.startswith("limit:"):
        seconds, reason = parse_backoff(refusal)
        raise errors.Busy(reason, seconds)


async def back_off(terms: SlotTerms, error: errors.Busy | errors.PoolExhausted) -> None:
    """Reduce a server's slots after it has refused a request; they come back one by one.

    A busy server is sent nothing for as long as it says, else for a pause that doubles with each
    refusal that follows. To be called while the refused request still has its permit.
    """
    is_overflow = isinstance(error, errors.PoolExhausted)
    wait = 0.0 if isinstance(error, errors.PoolExhausted) else error.retry_after or 0.0
    pauses = (0.0, 0.0) if is_overflow else (FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS)
    parts = ("", "people", f"limit:{terms.scope}")
    with suppress(RedisError, OSError):
        await permit_holder().back_off(
            keys=[permit_key(terms.server_id, part) for part in parts],
            args=[
                *(terms.scope, 0.5 if is_overflow else 1, int(wait * 1000), str(error)),
                *(int(seconds * 1000) for seconds in pauses),
            ],
        )
