"""Who uses a server's slots now, and how much it was used lately, as far as our requests go."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from django.conf import settings

from apps.llm.permits.keys import permit_key
from apps.llm.permits.terms import RECOVER_SECONDS, Lane, SlotTerms
from apps.runtime.redis import async_redis, sync_redis

# A page reports typing about every two seconds.
TYPING_MS = 2500
FORGET_MS = 10_000  # as in entries.lua
BUCKET_SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PermitInfo:
    """A permit that is held, or a person or an agent who waits for one."""

    lane: str
    """As in `Lane`, "waiting", or "revoked": its request is being closed."""
    label: str
    model: str
    owner: int | None
    """The user who may see the label."""
    tokens: int
    seconds: float
    """The age of the permit or of the wait."""
    wants: str = ""
    """The lane of a request that waits, as in `Lane`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """The permits of one server, and what limits them."""

    held: list[PermitInfo]
    waiting: list[PermitInfo]
    people: int
    """People active lately: rows leave as many slots free."""
    limit: int | None
    """The slots left after a refusal; None: all of them."""
    limit_reason: str
    limit_seconds: float | None
    """Seconds until all slots are back, if the server refuses nothing more."""
    wait_reason: str
    """The refusal that rows got last: see `wait_reason`."""


async def read_occupancy(terms: SlotTerms) -> Occupancy:
    """The permits of the server of `terms`, all models together; the limit is its model's."""
    pipeline = async_redis().pipeline(transaction=False)
    pipeline.time()
    pipeline.hgetall(permit_key(terms.server_id))
    pipeline.zrange(permit_key(terms.server_id, "people"), 0, -1, withscores=True)
    pipeline.hgetall(permit_key(terms.server_id, f"limit:{terms.scope}"))
    pipeline.get(permit_key(terms.server_id, "wait-reason"))
    (seconds, micros), entries, people, limited, wait_reason = await pipeline.execute()
    now = seconds * 1000 + micros // 1000
    living = sorted(unlapsed(entries.values(), now), key=lambda entry: entry["since"])
    permits = [_permit_info(entry, now) for entry in living]
    limit, limit_seconds = _current_limit(limited, now, terms.slots)
    return Occupancy(
        held=[one for one in permits if one.lane != "waiting"],
        waiting=[one for one in permits if one.lane == "waiting"],
        people=sum(now - when < settings.IDLE_AFTER_CHAT_SECONDS * 1000 for _, when in people),
        limit=limit,
        limit_reason=limited.get(b"reason", b"").decode() if limit is not None else "",
        limit_seconds=limit_seconds,
        wait_reason=(wait_reason or b"").decode(),
    )


def unlapsed(entries: Iterable[bytes], now: int) -> list[dict[str, Any]]:
    """The entries that have not lapsed, without batch and idle work that waits."""
    read = map(json.loads, entries)
    return [entry for entry in read if entry["ends"] > now and entry["lane"] != "queued"]


def _permit_info(entry: dict[str, Any], now: int) -> PermitInfo:
    return PermitInfo(
        lane=entry["lane"],
        label=entry["label"],
        model=entry["model"],
        owner=int(entry["owner"]) or None,
        tokens=int(entry["tokens"]),
        seconds=(now - entry["since"]) / 1000,
        wants=entry.get("wants", ""),
    )


def _current_limit(
    limited: dict[bytes, bytes], now: int, slots: int
) -> tuple[int, float] | tuple[None, None]:
    """The slots that are left and seconds until all are back, as `acquire.lua` counts."""
    if b"slots" not in limited:
        return None, None
    first, since, step = int(limited[b"slots"]), float(limited[b"since"]), RECOVER_SECONDS * 1000
    limit = first + int(max(0.0, now - since) // step)
    if limit >= slots:
        return None, None
    return limit, (since + (slots - first) * step - now) / 1000


def busy_slots(server_ids: Sequence[int]) -> dict[int, int]:
    """The number of permits held at each server. Blocks; one round trip."""
    pipeline = sync_redis().pipeline(transaction=False)
    pipeline.time()
    for pk in server_ids:
        pipeline.hvals(permit_key(pk))
    (seconds, micros), *entries = pipeline.execute()
    now = seconds * 1000 + micros // 1000
    return {
        pk: sum(entry["lane"] != "waiting" for entry in unlapsed(found, now))
        for pk, found in zip(server_ids, entries, strict=True)
    }


async def permits_in_flight(server_id: int) -> dict[Lane, int]:
    """The number of permits held now, by lane; revoked ones are not counted."""
    entries: Any = await async_redis().hgetall(permit_key(server_id))
    seconds, micros = await async_redis().time()
    living = unlapsed(entries.values(), seconds * 1000 + micros // 1000)
    lanes = [entry["lane"] for entry in living]
    return {lane: lanes.count(lane) for lane in Lane}


async def announce_person(server_id: int, person: int) -> None:
    """Have rows leave a slot free for someone who is about to ask, as if they had asked already.

    For as long as it may take until the page reports typing again, however short a person counts
    as active after an answer.
    """
    redis = async_redis()
    seconds, micros = await redis.time()
    people = permit_key(server_id, "people")
    idle_ms = int(settings.IDLE_AFTER_CHAT_SECONDS * 1000)
    until_ms = seconds * 1000 + micros // 1000 + max(idle_ms, TYPING_MS)
    pipeline = redis.pipeline(transaction=False)
    pipeline.zadd(people, {str(person): until_ms - idle_ms})
    pipeline.pexpireat(people, until_ms + FORGET_MS)
    await pipeline.execute()


async def recent_models_of_people(server_id: int) -> set[str]:
    """The models that people used lately: rows must not make the server unload them."""
    seconds, _ = await async_redis().time()
    since = (seconds - settings.KEEP_MODEL_SECONDS) * 1000
    found: Any = await async_redis().zrangebyscore(permit_key(server_id, "models"), since, "+inf")
    return {name.decode() for name in found}


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageBucket:
    """Our requests to a server in ten seconds, counted when they ended."""

    start: int
    """Unix time, in seconds."""
    requests: int = 0
    waited: int = 0
    """Requests of people that found no slot at once."""
    prompt: int = 0
    """Prompt tokens, those from the cache included."""
    cached: int = 0
    completion: int = 0
    reported: int = 0
    """Prompt tokens of answers that reported how many came from the cache."""


_COUNTERS = {field.name.encode(): field.name for field in fields(UsageBucket)}


async def usage_history(server_id: int, *, minutes: int = 15) -> list[UsageBucket]:
    """The buckets of the last minutes, oldest first, without gaps."""
    redis = async_redis()
    seconds, _ = await redis.time()
    last = seconds // BUCKET_SECONDS
    numbers = range(last - minutes * 60 // BUCKET_SECONDS + 1, last + 1)
    pipeline = redis.pipeline(transaction=False)
    for number in numbers:
        pipeline.hgetall(permit_key(server_id, f"rates:{number}"))
    counted = await pipeline.execute()
    return [
        UsageBucket(
            start=number * BUCKET_SECONDS,
            **{_COUNTERS[name]: int(count) for name, count in counts.items() if name in _COUNTERS},
        )
        for number, counts in zip(numbers, counted, strict=True)
    ]
