"""One Redis connection pool per event loop (asynchronous) and per process (synchronous)."""

import asyncio
from functools import cache
from weakref import WeakKeyDictionary

from django.conf import settings
from redis import Redis
from redis import asyncio as aioredis

_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, aioredis.Redis] = WeakKeyDictionary()


def async_redis() -> aioredis.Redis:
    """The client of the running event loop. Answers are bytes."""
    loop = asyncio.get_running_loop()
    if loop not in _by_loop:
        # No socket_timeout: with one, redis-py sends through asyncio.wait_for, which in Python 3.11
        # may swallow a cancellation. A task that was told to stop then runs on for ever.
        _by_loop[loop] = aioredis.Redis.from_url(settings.REDIS_URL, socket_timeout=None)
    return _by_loop[loop]


async def close_async_redis() -> None:
    """Closes the client of the running loop: the last thing a loop of ours does."""
    client = _by_loop.pop(asyncio.get_running_loop(), None)
    if client is not None:
        await client.aclose()


@cache
def sync_redis() -> Redis:
    """The client of this process for synchronous code. Answers are bytes."""
    return Redis.from_url(settings.REDIS_URL)
