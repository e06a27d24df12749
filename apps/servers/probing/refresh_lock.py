"""A lock in Redis: one probe of a server at a time, in all processes. Its functions block."""

import secrets
from contextlib import suppress

from redis.exceptions import RedisError

from apps.runtime.redis import sync_redis

# Longer than a probe can take; after a killed process the others wait no longer than this.
LOCK_SECONDS = 10


def _key(server_id: int) -> str:
    return f"llm:look:{server_id}"


def acquire(server_id: int) -> str | None:
    """A token to release the lock with; None while another caller holds it.

    Without Redis everyone gets it.
    """
    token = secrets.token_hex(8)
    try:
        acquired = sync_redis().set(_key(server_id), token, nx=True, ex=LOCK_SECONDS)
    except RedisError:
        return token
    return token if acquired else None


def release(server_id: int, token: str) -> None:
    with suppress(RedisError):
        redis = sync_redis()
        # If it lapses right now and becomes another caller's: one probe too many, no harm.
        if redis.get(_key(server_id)) == token.encode():
            redis.delete(_key(server_id))
