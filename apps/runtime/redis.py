"""One Redis connection pool per event loop (asynchronous) and per process (synchronous)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from django.conf import settings
from redis import Redis
from redis import asyncio as aioredis
from redis.asyncio.client import Pipeline
from redis.exceptions import TimeoutError as RedisTimeoutError

from apps.runtime.per_loop import PerLoop

# A Redis that hangs, or a network that swallows packets, would keep who asks for a quarter of an
# hour. Every command that is sent here takes milliseconds, but for those that are meant to wait.
COMMAND_SECONDS = 10.0
WAITING = frozenset({"BLPOP", "BRPOP", "XREAD"})
# A caller beyond these waits for one to be free: hundreds of rows may ask in the same moment.
MOST_CONNECTIONS = 64


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(COMMAND_SECONDS):
            yield
    except TimeoutError:
        detail = f"Redis has not answered for {COMMAND_SECONDS:g} seconds"
        raise RedisTimeoutError(detail) from None


class _Pipeline(Pipeline):
    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        async with _in_time():
            found: list[Any] = await super().execute(raise_on_error)
            return found


class _Redis(aioredis.Redis):
    """Gives every command so long, by asyncio's own timeout.

    Not by `socket_timeout`: with it redis-py sends through asyncio.wait_for, which in Python 3.11
    may swallow a cancellation. A task that was told to stop then runs on for ever.
    """

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        if args[0] in WAITING:
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        async with _in_time():
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:
        return _Pipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)


def _client() -> aioredis.Redis:
    pool = aioredis.BlockingConnectionPool.from_url(
        settings.REDIS_URL,
        max_connections=MOST_CONNECTIONS,
        timeout=COMMAND_SECONDS,
        socket_timeout=None,
    )
    return _Redis.from_pool(pool)


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
