"""Who may send now: never more requests in flight at a server than it has slots, people first.

llama-server does not refuse what it has no slot for, it queues it silently. So every request of
ours, from whichever process, first takes a permit: a member of a sorted set in Redis whose score
is the time its lease ends. A process that dies stops renewing, and its permits lapse.

While a person is active on a server the batch leaves one slot free (or as many as people are
using), so a question never waits for a row to finish.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import StrEnum

from apps.core.redis import async_redis

LEASE_SECONDS = 15
RENEW_SECONDS = 5
# How long after a person's last request the batch still leaves a slot free.
IDLE_AFTER_CHAT_SECONDS = 20
INTERACTIVE_POLL_SECONDS = 0.01
BATCH_POLL_SECONDS = 0.05


class Lane(StrEnum):
    INTERACTIVE = "interactive"
    """A person waits: chat, previews, single predictions."""
    BATCH = "batch"


# KEYS: permits of each lane (sorted sets), the mark that a person is active.
# ARGV: lane, permit, width, lease ms, idle-after-chat ms. Redis's clock, so that machines agree.
_TAKE = """
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local people, rows = redis.call('ZCARD', KEYS[1]), redis.call('ZCARD', KEYS[2])
local width = tonumber(ARGV[3])
if ARGV[1] == 'interactive' then redis.call('SET', KEYS[3], 1, 'PX', ARGV[5]) end
if people + rows >= width then return 0 end
if ARGV[1] == 'batch' then
  local reserved = math.max(people, redis.call('EXISTS', KEYS[3]))
  if width > 1 and rows >= width - reserved then return 0 end
end
redis.call('ZADD', ARGV[1] == 'batch' and KEYS[2] or KEYS[1], now + ARGV[4], ARGV[2])
return 1
"""

_RENEW = """
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
return redis.call('ZADD', KEYS[1], 'XX', now + ARGV[2], ARGV[1])
"""


def _lane_key(server_id: int, lane: Lane) -> str:
    return f"slots:{server_id}:{lane}"


def _active_key(server_id: int) -> str:
    return f"slots:{server_id}:active"


@asynccontextmanager
async def permit(
    server_id: int,
    *,
    width: int,
    lane: Lane,
    waiting: Callable[[], object] | None = None,
) -> AsyncIterator[None]:
    """Holds one of a server's slots; waits for it as long as it takes.

    Args:
        width: how many slots the server has.
        waiting: called once if the permit is not to be had at once.
    """
    name = uuid.uuid4().hex
    await _take(server_id, name, width, lane, waiting)
    renewal = asyncio.create_task(_renew(server_id, name, lane))
    try:
        yield
    finally:
        # Not awaited: one that comes too late renews nothing (XX), one that hangs delays nobody.
        renewal.cancel()
        # Shielded: the slot is free again also when the holder was cancelled, by Stop for instance.
        await asyncio.shield(async_redis().zrem(_lane_key(server_id, lane), name))


async def in_flight(server_id: int) -> dict[Lane, int]:
    """How many permits are held now."""
    now = time.time() * 1000
    redis = async_redis()
    return {lane: int(await redis.zcount(_lane_key(server_id, lane), now, "+inf")) for lane in Lane}


async def _take(
    server_id: int, name: str, width: int, lane: Lane, waiting: Callable[[], object] | None
) -> None:
    redis = async_redis()
    take = redis.register_script(_TAKE)
    keys = [
        _lane_key(server_id, Lane.INTERACTIVE),
        _lane_key(server_id, Lane.BATCH),
        _active_key(server_id),
    ]
    arguments: list[str | int] = [
        lane,
        name,
        width,
        int(LEASE_SECONDS * 1000),
        IDLE_AFTER_CHAT_SECONDS * 1000,
    ]
    pause = BATCH_POLL_SECONDS if lane is Lane.BATCH else INTERACTIVE_POLL_SECONDS
    while not await take(keys=keys, args=arguments):
        if waiting is not None:
            waiting()
            waiting = None
        await asyncio.sleep(pause)


async def _renew(server_id: int, name: str, lane: Lane) -> None:
    renew = async_redis().register_script(_RENEW)
    while True:
        await asyncio.sleep(RENEW_SECONDS)
        await renew(keys=[_lane_key(server_id, lane)], args=[name, int(LEASE_SECONDS * 1000)])
