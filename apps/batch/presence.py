"""Which processes run pumps now, kept in Redis and on its clock: a job can say that there is none.

Each process renews its entry at every look; one that was killed or hangs is soon forgotten.
"""

import os
import socket
from functools import cache
from typing import Any

from apps.core.redis import async_redis, sync_redis

CHANNEL = "pumps"
"""Published when there is something to do."""
GONE_SECONDS = 30  # above the longest that a busy database keeps a process waiting
_KEY = "pumps:alive"


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
    """Whether a process runs pumps; with `here`, one on this machine. Raises RedisError."""
    redis = sync_redis()
    seconds, _ = redis.time()
    names: Any = redis.zrangebyscore(_KEY, seconds - GONE_SECONDS, "+inf")
    prefix = f"{socket.gethostname()}/".encode() if here else b""
    return any(name.startswith(prefix) for name in names)


def call(server_id: int) -> None:
    """Wakes all processes that run pumps: the server has work. Raises RedisError."""
    sync_redis().publish(CHANNEL, server_id)
