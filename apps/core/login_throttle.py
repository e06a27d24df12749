"""How often a password may be guessed: tries counted in Redis, so over all web processes.

Not django-axes: it writes a row for every try, brings two models and a middleware, and counts after
the password was checked, so that many guesses sent at once all pass. A try is counted before, and
taken back when the password was right.

API keys and login links are not counted: they are 256 random bits, which nobody guesses.
"""

import logging
from math import ceil

from redis import Redis, RedisError

from apps.core.models import digest
from apps.core.redis import sync_redis

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 15 * 60
TRIES = 5
"""Of one name from one address in a window."""
TRIES_OF_ADDRESS = 50
"""Of any names. More, because many people may sit behind one address."""


def count_try(name: str, address: str) -> int:
    """Count a try to log in; the seconds until the next one is worth it, 0 when this one is."""
    try:
        return _count(_pair(name, address), TRIES) or _count(_address(address), TRIES_OF_ADDRESS)
    except RedisError as error:
        # Without Redis nothing else works, and the person who can mend that must get in.
        logger.warning("Tries to log in are not counted: %s", error)
        return 0


def was_right(name: str, address: str) -> None:
    """The password of the last try was right: it does not count, nor do the typos before it."""
    try:
        with sync_redis().pipeline() as pipe:
            pipe.delete(_pair(name, address))
            pipe.set(_address(address), 1, ex=WINDOW_SECONDS, nx=True)  # its window may have ended
            pipe.decr(_address(address))
            pipe.execute()
    except RedisError as error:
        logger.warning("A login was not taken off the count: %s", error)


def wait_in_words(seconds: int) -> str:
    minutes = ceil(seconds / 60)
    return "a minute" if minutes <= 1 else f"{minutes} minutes"


def _count(key: str, most: int) -> int:
    redis: Redis = sync_redis()
    with redis.pipeline() as pipe:
        pipe.set(key, 0, ex=WINDOW_SECONDS, nx=True)  # a window begins with its first try
        pipe.incr(key)
        pipe.ttl(key)
        _, tries, left = pipe.execute()
    return max(1, int(left)) if tries > most else 0


def _pair(name: str, address: str) -> str:
    # A digest: a name may be as long as a form allows, and is nobody's business in Redis.
    return f"login-tries:{digest(f'{address} {name.strip().casefold()}')}"


def _address(address: str) -> str:
    return f"login-tries-of:{digest(address)}"
