"""Which processes run pumps now, kept in Redis and on its clock: a job can say that there is none.

Each process renews its entry at every look; one that was killed or hangs is soon forgotten.
"""

import os
import socket
import time
from functools import cache
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from apps.runtime.redis import async_redis, sync_redis

CHANNEL = "pumps"
"""Published when there is something to do."""
GONE_SECONDS = 30  # above the longest that a busy database keeps a process waiting
AWAY_SECONDS = 3.0
_KEY = "pumps:alive"
_away_until = 0.0


@cache
def _name_of(pid: int) -> str:
    return f"{socket.gethostname()}/{pid}"


async def tell() -> None:
    """This process is there."""
    redis = async_redis()
    seconds, _ = await redis.time()
    pipeline = redis.pipeline(transaction=False)
    pipeline.zadd(_KEY, {_name_of(os.getpid()): seconds})
    pipeline.zremrangebyscore(_KEY, "-inf", seconds - GONE_SECONDS)
    await pipeline.execute()


async def leave() -> None:
    """This process ends."""
    await async_redis().zrem(_KEY, _name_of(os.getpid()))


def anybody(*, here: bool = False) -> bool:
    """Whether a process runs pumps; with `here`, one on this machine.

    Raises:
        RedisError: Redis does not answer. A page of a hundred jobs waits for that once.
    """
    global _away_until
    if time.monotonic() < _away_until:
        raise RedisConnectionError("Redis did not answer a moment ago.")
    redis = sync_redis()
    try:
        seconds, _ = redis.time()
        names: Any = redis.zrangebyscore(_KEY, seconds - GONE_SECONDS, "+inf")
    except RedisError:
        _away_until = time.monotonic() + AWAY_SECONDS
        raise
    prefix = f"{socket.gethostname()}/".encode() if here else b""
    return any(name.startswith(prefix) for name in names)


def call(server_id: int) -> None:
    """Wakes all processes that run pumps: the server has work. Raises RedisError."""
    sync_redis().publish(CHANNEL, server_id)
