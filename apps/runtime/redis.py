"""One Redis connection pool per event loop (asynchronous) and per process (synchronous).

Buys: an answer within COMMAND_SECONDS, or an error, where a Redis that hangs, or a network that
swallows packets, would hold a caller for a quarter of an hour.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from django.conf import settings
from redis import Redis
from redis import asyncio as aioredis
from redis.asyncio.client import Pipeline
from redis.exceptions import TimeoutError as RedisTimeoutError

from apps.runtime.per_loop import PerLoop
from apps.runtime.time_limit import time_limit

# Commands take milliseconds, except those that are meant to wait.
COMMAND_SECONDS = 10.0
BLOCKING_COMMANDS = frozenset({"BLPOP", "BRPOP", "XREAD"})
# Further callers wait for a free connection: hundreds of rows may ask at the same moment.
MAX_CONNECTIONS = 64


@contextmanager
def _limited_time() -> Iterator[None]:
    try:
        with time_limit(COMMAND_SECONDS):
            yield
    except TimeoutError:
        detail = f"Redis has not answered for {COMMAND_SECONDS:g} seconds"
        raise RedisTimeoutError(detail) from None


class _Pipeline(Pipeline):
    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        with _limited_time():
            found: list[Any] = await super().execute(raise_on_error)
            return found


class _Redis(aioredis.Redis):
    """Limits the time of every command, by asyncio's own timeout.

    With `socket_timeout`, redis-py sends through asyncio.wait_for, which in Python 3.11 may swallow
    a cancellation: a task that should stop then runs for ever.
    """

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        if args[0] in BLOCKING_COMMANDS:
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        with _limited_time():
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:
        return _Pipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)


def _client() -> aioredis.Redis:
    pool = aioredis.BlockingConnectionPool.from_url(
        settings.REDIS_URL,
        max_connections=MAX_CONNECTIONS,
        timeout=COMMAND_SECONDS,
        socket_timeout=None,
        socket_connect_timeout=COMMAND_SECONDS,
    )
    return _Redis.from_pool(pool)


_clients = PerLoop(_client, aioredis.Redis.aclose)


def async_redis() -> aioredis.Redis:
    """Return the client of the running event loop. Replies are bytes."""
    return _clients.get()


def own_connection() -> aioredis.Redis:
    """Return a client with one connection, for who waits in commands; the caller closes it."""
    return aioredis.Redis.from_url(
        settings.REDIS_URL,
        max_connections=1,
        socket_timeout=None,  # shorter by default than they wait
        socket_connect_timeout=COMMAND_SECONDS,
    )


async def close_async_redis() -> None:
    """Close the client of the running loop, before the loop does so at its end."""
    await _clients.close()


@cache
def sync_redis() -> Redis:
    """Return this process's client for synchronous code. Replies are bytes."""
    return Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=COMMAND_SECONDS,
        socket_connect_timeout=COMMAND_SECONDS,
    )
