"""Whether a server answers, as those see it who ask it for tokens. In Redis.

A server can say OK on every route and never answer a request. An arriving token is the only proof
that it works, so whoever streams an answer records it here, and records when no token came within
the budget. The next answer replaces what is lost with Redis.
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
class Liveness:
    last_token: datetime | None = None
    stuck_since: datetime | None = None
    """The start of the time in which it takes requests and returns no token."""


def _key(server_id: int) -> str:
    return f"llm:signs:{server_id}"


async def record_token(server_id: int) -> None:
    """A token has arrived. Never raises: no answer fails because this could not be recorded."""
    with suppress(RedisError):
        async with async_redis().pipeline(transaction=False) as pipe:
            pipe.hset(_key(server_id), "token", str(time.time()))
            pipe.hdel(_key(server_id), "stuck")
            pipe.expire(_key(server_id), KEPT_SECONDS)
            await pipe.execute()


async def record_stall(server_id: int) -> None:
    """A request was taken and no token came within its budget."""
    with suppress(RedisError):
        async with async_redis().pipeline(transaction=False) as pipe:
            pipe.hsetnx(_key(server_id), "stuck", str(time.time()))
            pipe.expire(_key(server_id), KEPT_SECONDS)
            await pipe.execute()


def clear_stall(server_id: int) -> None:
    """Forget a stall, after a restart of the server. Blocks."""
    with suppress(RedisError):
        sync_redis().hdel(_key(server_id), "stuck")


def read_liveness(server_ids: Sequence[int]) -> dict[int, Liveness]:
    """Read some servers' records in one round trip; {} without Redis. Blocks."""
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
        server_id: Liveness(_time(found.get(b"token")), _time(found.get(b"stuck")))
        for server_id, found in zip(server_ids, replies, strict=True)
    }


def _time(value: bytes | None) -> datetime | None:
    return datetime.fromtimestamp(float(value), UTC) if value else None
