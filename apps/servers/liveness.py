"""Signs of life: whether answers come, as those see it who ask for them. Kept in Redis.

A server can say OK on every route and never answer a request. An arriving token is the only proof
that it works, so whoever streams an answer notes the first one here, and notes when none came
within the budget. Losing these notes with Redis loses nothing that the next answer does not tell.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from redis.exceptions import RedisError

from apps.runtime.redis import async_redis, sync_redis

KEPT_SECONDS = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Signs:
    last_token: datetime | None = None
    stuck_since: datetime | None = None
    """Since when it takes requests and gives no token."""


def _key(server_id: int) -> str:
    return f"llm:signs:{server_id}"


async def alive(server_id: int) -> None:
    """A token has arrived. Never raises: no answer fails because it could not be noted."""
    with suppress(RedisError):
        async with async_redis().pipeline(transaction=False) as pipe:
            pipe.hset(_key(server_id), "token", str(time.time()))
            pipe.hdel(_key(server_id), "stuck")
            pipe.expire(_key(server_id), KEPT_SECONDS)
            await pipe.execute()


async def stuck(server_id: int) -> None:
    """A request was taken and no token came within its budget."""
    with suppress(RedisError):
        async with async_redis().pipeline(transaction=False) as pipe:
            pipe.hsetnx(_key(server_id), "stuck", str(time.time()))
            pipe.expire(_key(server_id), KEPT_SECONDS)
            await pipe.execute()


def restarted(server_id: int) -> None:
    """It was away in between: what hung then hangs no more."""
    with suppress(RedisError):
        sync_redis().hdel(_key(server_id), "stuck")


def read(server_ids: Sequence[int]) -> dict[int, Signs]:
    """The signs of some servers, in one round trip. Blocks: from async code, in a thread."""
    if not server_ids:
        return {}
    try:
        with sync_redis().pipeline(transaction=False) as pipe:
            for server_id in server_ids:
                pipe.hgetall(_key(server_id))
            replies = cast(list[dict[bytes, bytes]], pipe.execute())
    except RedisError:
        return {}
    return {
        server_id: Signs(_moment(found.get(b"token")), _moment(found.get(b"stuck")))
        for server_id, found in zip(server_ids, replies, strict=True)
    }


def _moment(value: bytes | None) -> datetime | None:
    return datetime.fromtimestamp(float(value), UTC) if value else None
