"""Who may send now: never more requests in flight at a server than it has slots, people first.

llama-server does not refuse what it has no slot for, it queues it silently. So every request of
ours, from whichever process, first takes a permit. What is in flight stands in Redis, one entry a
permit; the scripts in `permits/` decide, each in one step. A process that dies stops renewing, and
its permits lapse.

A question that finds all slots busy takes the slot of the youngest row: its holder hears of it,
closes the stream, and gets `SlotTaken`. While people are active on a server, rows leave as many
slots free as there are people, so that the next question finds one. People take turns: many
questions of one are not so many places before another's first.
"""

import asyncio
import json
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.conf import settings
from redis.exceptions import RedisError

from apps.llm import errors
from apps.llm.permits.permit_holder import LEASE_SECONDS, Desk, Permit, desk, key
from apps.runtime.redis import async_redis, sync_redis
from apps.servers.models import Server
from apps.servers.refresh import FRESH_FOR, note_alive, note_error

logger = logging.getLogger(__name__)

# Should the message that a slot is free be lost, who waits asks again after this; it is also how
# soon rows notice that nobody is active any more.
ASK_AGAIN_SECONDS = 0.25
# A person who waits and does not ask again is gone.
PATIENCE_SECONDS = 2.0
# So long after an empty Redis has started nobody is let in: who held a permit registers it first.
SETTLE_SECONDS = 1
# So long a person waits for a Redis that is away; then the question goes without a permit.
REDIS_SECONDS = 2.0
# A page tells of typing every two seconds or so.
TYPING_MS = 2500
FORGOTTEN_MS = 10_000  # as in entries.lua
# A server that refused a request is given one more again after each of these.
RECOVER_SECONDS = 15.0
BUCKET_SECONDS = 10
# A server that refuses and does not say for how long is left alone for the first of these, and for
# twice as long after each refusal that follows.
FIRST_PAUSE_SECONDS = 1.0
LAST_PAUSE_SECONDS = 60.0


class Lane(StrEnum):
    INTERACTIVE = "interactive"
    """A person waits: chat, previews, single predictions."""
    BATCH = "batch"
    """Rows: on every slot that people leave, until a person needs one more."""
    SPARE = "spare"
    """Worth an idle slot and nothing more: reading a prompt ahead, titles, summaries."""


class SlotTaken(Exception):
    """A person needed the slot: the request was closed. Nothing is wrong with what it asked."""


class ModelInUse(Exception):
    """The server would have to unload a model that somebody uses. `model` says which."""

    def __init__(self, model: str) -> None:
        super().__init__(
            f"The server cannot hold all models at the same time, and {model} is in use."
        )
        self.model = model


class NoSlot(Exception):
    """No slot is idle, and what was to be done is not worth waiting."""


@asynccontextmanager
async def permit(
    server: Server,
    *,
    lane: Lane,
    model: str = "",
    tokens: int = 0,
    label: str = "",
    person: int | None = None,
    owner: int | None = None,
    waiting: Callable[[], object] | None = None,
) -> AsyncIterator[Permit]:
    """Holds one of a server's slots; waits for it as long as it takes.

    Args:
        tokens: the most that prompt and answer may come to. Counts where the requests in flight
            share one context (a unified KV cache): together they must not outgrow it.
        label: what the Servers page calls it, such as the name of a job.
        person: the user who waits; people who are active have slots left free for them.
        owner: the user whose work it is, who may see the label.
        waiting: called once if the permit is not to be had at once.

    Raises:
        SlotTaken: from the body, in the lanes BATCH and SPARE.
        ModelInUse: in the lane BATCH; try again later, or go on with another model meanwhile.
        NoSlot: in the lane SPARE.
        RedisError: Redis is away, in the lanes BATCH and SPARE. People's questions go all the same.
    """
    terms = _terms(server, model)
    waiter = str(person or "somebody") if lane is Lane.INTERACTIVE else ""
    claim = {
        "lane": lane,
        "scope": terms["scope"],
        "model": model,
        "label": label,
        "owner": owner or person or 0,
        "person": waiter,
        "tokens": min(tokens, terms["pool"]) if terms["pool"] else tokens,
    }
    task = asyncio.current_task()
    assert task is not None
    held = Permit(uuid.uuid4().hex, server.pk, json.dumps(claim), waiter)
    here, is_sent = desk(), False
    try:
        if lane is Lane.INTERACTIVE:
            await _take_as_person(here, held, terms, waiting)
        else:
            held.holder = task
            await _take(here, held, terms, lane, waiting)
        cancelled_before = task.cancelling()
        here.hold(held)
        is_sent = True
        try:
            yield held
        except asyncio.CancelledError:
            if held.taken and task.uncancel() <= cancelled_before:
                raise SlotTaken from None
            raise
    except errors.LLMError as error:
        if is_sent:
            await note_error(server, error, model)
            # An overflow of a cache whose size is known is prevented by counting tokens.
            if isinstance(error, errors.Busy) or (
                isinstance(error, errors.PoolExhausted) and not server.pool(model)
            ):
                await refused(server, model, error)
        raise
    finally:
        # Shielded: the slot is free again also when the holder was cancelled, by Stop for instance.
        await asyncio.shield(here.give_back(held, idle_ms=terms["idle"]))
    if held.usage is not None and here.sees_life(server.pk):
        await note_alive(server)


def _terms(server: Server, model: str) -> dict[str, Any]:
    """What the script needs to know of the server."""
    return {
        "scope": server.scope(model),
        "width": server.width(model),
        "pool": server.pool(model) or 0,
        "swaps": server.swaps,
        "loaded": server.model_id(model) in server.loaded_models,
        "resident": server.loaded_models if server.swaps else [],
        "at_once": server.models_at_once,
        "serves": not server.model_facts or server.model(model) is not None,
        "lease": int(LEASE_SECONDS * 1000),
        "patience": int(PATIENCE_SECONDS * 1000),
        "settle": SETTLE_SECONDS,
        "recover": int(RECOVER_SECONDS * 1000),
        "idle": max(1, int(settings.IDLE_AFTER_CHAT_SECONDS * 1000)),
        "keep": int(settings.KEEP_MODEL_SECONDS * 1000),
        "fresh": int(FRESH_FOR.total_seconds() * 1000),
    }


async def _take_as_person(
    here: Desk, held: Permit, terms: dict[str, Any], waiting: Callable[[], object] | None
) -> None:
    try:
        # Once somebody is waiting for a slot Redis has answered: this is not the limit for that.
        await _take(here, held, terms, Lane.INTERACTIVE, waiting, patience=REDIS_SECONDS)
    except (RedisError, OSError, TimeoutError) as error:
        logger.warning("A question goes without a permit, Redis does not answer: %s", error)


async def _take(
    here: Desk,
    held: Permit,
    terms: dict[str, Any],
    lane: Lane,
    waiting: Callable[[], object] | None,
    *,
    patience: float | None = None,
) -> None:
    server_id = held.server_id
    parts = ("", "people", f"limit:{terms['scope']}", "models", f"turns:{terms['scope']}")
    keys = [key(server_id, part) for part in parts]
    arguments = [held.name, held.claim, json.dumps(terms)]
    if lane is not Lane.INTERACTIVE:
        await here.listen(server_id)  # not to miss that the permit is taken back
    while True:
        news = here.news(server_id)
        async with asyncio.timeout(patience):
            refused = await here.take(keys=keys, args=arguments)
        if not refused:
            return
        if lane is Lane.SPARE:
            raise NoSlot
        if lane is Lane.BATCH and refused.startswith(b"model:"):
            raise ModelInUse(refused.removeprefix(b"model:").decode())
        if lane is Lane.INTERACTIVE and refused.startswith(b"limit:"):
            seconds, reason = _limit_of(refused.decode())
            raise errors.Busy(reason, seconds)
        if waiting is not None:
            waiting()
            waiting = None
            await here.listen(server_id)
            continue
        await here.listen(server_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(ASK_AGAIN_SECONDS):
                await news.wait()


async def announce(server: Server, person: int) -> None:
    """Says that somebody is about to ask: rows leave a slot free as if he had asked already.

    For as long as it may take until the page tells of it again, however short that is after a
    question.
    """
    redis = async_redis()
    seconds, micros = await redis.time()
    people = key(server.pk, "people")
    pipeline = redis.pipeline(transaction=False)
    idle_ms = int(settings.IDLE_AFTER_CHAT_SECONDS * 1000)
    until_ms = seconds * 1000 + micros // 1000 + max(idle_ms, TYPING_MS)
    pipeline.zadd(people, {str(person): until_ms - idle_ms})
    pipeline.pexpireat(people, until_ms + FORGOTTEN_MS)
    await pipeline.execute()


async def refused(server: Server, model: str, error: errors.Busy | errors.PoolExhausted) -> None:
    """Cuts a server's width down after it has refused a request, and lets it grow again slowly.

    One that is busy is sent nothing for as long as it says, else for a pause that doubles with each
    refusal that follows. `permit` calls it, while the refused request still has its permit.
    """
    scope = server.scope(model)
    is_pool = isinstance(error, errors.PoolExhausted)
    wait = 0.0 if isinstance(error, errors.PoolExhausted) else error.retry_after or 0.0
    pauses = (0.0, 0.0) if is_pool else (FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS)
    with suppress(RedisError, OSError):
        await desk().narrow(
            keys=[key(server.pk), key(server.pk, "people"), key(server.pk, f"limit:{scope}")],
            args=[
                *(scope, 0.5 if is_pool else 1, int(wait * 1000), str(error)),
                *(int(seconds * 1000) for seconds in pauses),
            ],
        )


def refused_in_words(held_back: str) -> str:
    """Why rows wait after a refusal, as a sentence; "" for the other reasons of `held_back`."""
    if not held_back.startswith("limit:"):
        return ""
    seconds, reason = _limit_of(held_back)
    return f"Waiting {max(1, round(seconds))} s. {reason}"


def _limit_of(told: str) -> tuple[float, str]:
    """How long a server is left alone, and what it said."""
    _, ms, reason = told.split(":", 2)
    return int(ms) / 1000, reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A permit that is held, or a person who waits for one."""

    lane: str
    """As in `Lane`, or "yielding": taken back, its request is being closed."""
    label: str
    model: str
    owner: int | None
    """The user who may see the label."""
    tokens: int
    seconds: float
    """For how long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Who uses a server now, as far as this workbench's own requests go."""

    held: list[Entry]
    waiting: list[Entry]
    people: int
    """How many were active lately: rows leave as many slots free."""
    limit: int | None
    """To how many requests at once the server was cut down after it refused one."""
    limit_reason: str
    limit_seconds: float | None
    """How long until the width is whole again, if it refuses nothing more."""
    held_back: str
    """Why rows wait: "slots", "people", "tokens", "restarted", "model:" and the one in the way,
    "limit:" with milliseconds and reason where the server has refused a request."""


async def occupancy(server: Server, model: str = "") -> Occupancy:
    redis = async_redis()
    pipeline = redis.pipeline(transaction=False)
    pipeline.time()
    pipeline.hgetall(key(server.pk))
    pipeline.zrange(key(server.pk, "people"), 0, -1, withscores=True)
    pipeline.hgetall(key(server.pk, f"limit:{server.scope(model)}"))
    pipeline.get(key(server.pk, "held-back"))
    (seconds, micros), entries, people, cut, held_back = await pipeline.execute()
    now = seconds * 1000 + micros // 1000
    living = [e for e in map(json.loads, entries.values()) if e["ends"] > now]
    shown = [
        Entry(
            lane=entry["lane"],
            label=entry["label"],
            model=entry["model"],
            owner=int(entry["owner"]) or None,
            tokens=int(entry["tokens"]),
            seconds=(now - entry["since"]) / 1000,
        )
        for entry in sorted(living, key=lambda entry: entry["since"])
    ]
    idle_ms = settings.IDLE_AFTER_CHAT_SECONDS * 1000
    limit, limit_seconds = _limit_now(cut, now, server.width(model))
    return Occupancy(
        held=[entry for entry in shown if entry.lane != "waiting"],
        waiting=[entry for entry in shown if entry.lane == "waiting"],
        people=sum(now - when < idle_ms for _, when in people),
        limit=limit,
        limit_reason=cut.get(b"reason", b"").decode() if limit is not None else "",
        limit_seconds=limit_seconds,
        held_back=(held_back or b"").decode(),
    )


def _limit_now(
    cut: dict[bytes, bytes], now: int, width: int
) -> tuple[int, float] | tuple[None, None]:
    """The width that is left and how long until all of it is back, as `take.lua` counts."""
    if b"width" not in cut:
        return None, None
    first, since, step = int(cut[b"width"]), float(cut[b"since"]), RECOVER_SECONDS * 1000
    limit = first + int(max(0.0, now - since) // step)
    if limit >= width:
        return None, None
    return limit, (since + (width - first) * step - now) / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """What our requests came to in ten seconds, counted when they ended."""

    start: int
    """Unix time, in seconds."""
    requests: int = 0
    waited: int = 0
    """Questions that found no slot at once."""
    prompt: int = 0
    """Tokens of prompts, those from the cache among them."""
    cached: int = 0
    completion: int = 0
    told: int = 0
    """Tokens of prompts of which the server told how many came from its cache."""


async def rates(server: Server, *, minutes: int = 15) -> list[Bucket]:
    """The last minutes, oldest first, without gaps."""
    redis = async_redis()
    seconds, _ = await redis.time()
    last = seconds // BUCKET_SECONDS
    numbers = range(last - minutes * 60 // BUCKET_SECONDS + 1, last + 1)
    pipeline = redis.pipeline(transaction=False)
    for number in numbers:
        pipeline.hgetall(key(server.pk, f"rates:{number}"))
    counted = await pipeline.execute()
    return [
        Bucket(start=number * BUCKET_SECONDS, **{k.decode(): int(v) for k, v in counts.items()})
        for number, counts in zip(numbers, counted, strict=True)
    ]


async def people_models(server: Server) -> set[str]:
    """The models that people used lately: rows must not make the server unload them."""
    seconds, _ = await async_redis().time()
    since = (seconds - settings.KEEP_MODEL_SECONDS) * 1000
    found: Any = await async_redis().zrangebyscore(key(server.pk, "models"), since, "+inf")
    return {name.decode() for name in found}


def busy(server_ids: Sequence[int]) -> dict[int, int]:
    """How many slots of each server this workbench has in use now. Synchronous."""
    pipeline = sync_redis().pipeline(transaction=False)
    pipeline.time()
    for pk in server_ids:
        pipeline.hvals(key(pk))
    (seconds, micros), *entries = pipeline.execute()
    now = seconds * 1000 + micros // 1000
    held = [[e for e in map(json.loads, found) if e["ends"] > now] for found in entries]
    return {
        pk: sum(entry["lane"] != "waiting" for entry in found)
        for pk, found in zip(server_ids, held, strict=True)
    }


def why_rows_wait(server_id: int) -> str:
    """Why rows wait for a model of this server, as a sentence; "" where they do not. Blocks."""
    with suppress(RedisError):
        found = sync_redis().get(key(server_id, "held-back"))
        if isinstance(found, bytes) and found.startswith(b"model:"):
            names = found.removeprefix(b"model:").decode()
            return f"Waiting: {names} is in use, and the server would have to unload it."
        if isinstance(found, bytes):
            return refused_in_words(found.decode())
    return ""


async def in_flight(server_id: int) -> dict[Lane, int]:
    """How many permits are held now, by lane; one that is being closed is its lane's no longer."""
    entries: Any = await async_redis().hgetall(key(server_id))
    seconds, micros = await async_redis().time()
    now = seconds * 1000 + micros // 1000
    lanes = [e["lane"] for e in map(json.loads, entries.values()) if e["ends"] > now]
    return {lane: lanes.count(lane) for lane in Lane}
