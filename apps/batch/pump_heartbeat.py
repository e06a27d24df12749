"""Heartbeats of the processes that run pumps, and the channel that wakes them.

Kept in Redis and on its clock. A process renews its entry whenever it looks for work; the entry of
a killed or hanging process expires.
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
EXPIRES_SECONDS = 30  # above the longest wait for a busy database
REDIS_RETRY_SECONDS = 3.0
_KEY = "pumps:alive"
_redis_down_until = 0.0


@cache
def _entry_of(pid: int) -> str:
    return f"{socket.gethostname()}/{pid}"


async def beat() -> None:
    """Renew the entry of this process and drop expired ones."""
    redis = async_redis()
    seconds, _ = await redis.time()
    pipeline = redis.pipeline(transaction=False)
    pipeline.zadd(_KEY, {_entry_of(os.getpid()): seconds})
    pipeline.zremrangebyscore(_KEY, "-inf", seconds - EXPIRES_SECONDS)
    await pipeline.execute()


async def sign_off() -> None:
    """Remove the entry of this process."""
    await async_redis().zrem(_KEY, _entry_of(os.getpid()))


def is_pump_alive(*, on_this_machine: bool = False) -> bool:
    """True if a process runs pumps.

    Raises:
        RedisError: Redis does not answer. A page of a hundred jobs waits for that once.
    """
    global _redis_down_until
    if time.monotonic() < _redis_down_until:
        raise RedisConnectionError("Redis did not answer a moment ago.")
    redis = sync_redis()
    try:
        seconds, _ = redis.time()
        entries: Any = redis.zrangebyscore(_KEY, seconds - EXPIRES_SECONDS, "+inf")
    except RedisError:
        _redis_down_until = time.monotonic() + REDIS_RETRY_SECONDS
        raise
    prefix = f"{socket.gethostname()}/".encode() if on_this_machine else b""
    return any(entry.startswith(prefix) for entry in entries)


def publish_work(server_id: int) -> None:
    """Wake all processes that run pumps. Raises RedisError."""
    sync_redis().publish(CHANNEL, server_id)
