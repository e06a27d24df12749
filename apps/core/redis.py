"""One Redis connection pool per event loop (asynchronous) and per process (synchronous)."""

from functools import cache

from django.conf import settings
from redis import Redis
from redis import asyncio as aioredis

from apps.core.loops import PerLoop


def _client() -> aioredis.Redis:
    # No socket_timeout: with one, redis-py sends through asyncio.wait_for, which in Python 3.11
    # may swallow a cancellation. A task that was told to stop then runs on for ever.
    return aioredis.Redis.from_url(settings.REDIS_URL, socket_timeout=None)


_clients = PerLoop(_client, aioredis.Redis.aclose)


def async_redis() -> aioredis.Redis:
    """The client of the running event loop. Answers are bytes."""
    return _clients.get()


async def close_async_redis() -> None:
    """Closes the client of the running loop, before the loop does so at its end."""
    await _clients.close()


@cache
def sync_redis() -> Redis:
    """The client of this process for synchronous code. Answers are bytes."""
    return Redis.from_url(settings.REDIS_URL)
