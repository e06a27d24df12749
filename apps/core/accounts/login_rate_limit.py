"""Limits guesses of a password: attempts counted in Redis, across all web processes.

Not django-axes: it writes a row for every try, brings two models and a middleware, and counts after
the password was checked, so that many guesses sent at once all pass. A try is counted before, and
taken back when the password was right.

API keys and login links are not counted: they are 256 random bits, which nobody guesses.
"""

import logging
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil

from redis import Redis, RedisError

from apps.core.models import digest
from apps.runtime.redis import sync_redis

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 15 * 60
TRIES = 5
"""Of one name from one address in a window."""
TRIES_OF_ADDRESS = 50
"""Of any names. More, because many people may sit behind one address."""
TRIES_OF_NAME = 100
"""From any addresses: who has many of them guesses no faster than this."""
KNOWN_SECONDS = 30 * 24 * 60 * 60
"""From an address where a name came in lately only their own tries count: guesses of others at the
name, or from the address, do not lock its owner out."""


def count_try(name: str, address: str) -> int:
    """Count a try to log in; the seconds until the next one is worth it, 0 when this one is."""
    try:
        if wait := _count(_pair(name, address), TRIES):
            return wait
        if sync_redis().exists(_known(name, address)):
            return 0
        return _count(_address(address), TRIES_OF_ADDRESS) or _count(_name(name), TRIES_OF_NAME)
    except RedisError as error:
        # Without Redis nothing else works, and the person who can mend that must get in.
        logger.warning("Tries to log in are not counted: %s", error)
        return 0


def was_right(name: str, address: str) -> None:
    """The password of the last try was right: it does not count, nor do the typos before it."""
    try:
        with sync_redis().pipeline() as pipe:
            pipe.delete(_pair(name, address))
            for key in (_address(address), _name(name)):
                pipe.set(key, 1, ex=WINDOW_SECONDS, nx=True)  # its window may have ended
                pipe.decr(key)
            pipe.set(_known(name, address), 1, ex=KNOWN_SECONDS)
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


# Digests: a name may be as long as a form allows, and is nobody's business in Redis.


def _pair(name: str, address: str) -> str:
    return f"login-tries:{digest(f'{_network(address)} {_plain(name)}')}"


def _known(name: str, address: str) -> str:
    return f"login-known:{digest(f'{_network(address)} {_plain(name)}')}"


def _address(address: str) -> str:
    return f"login-tries-of:{digest(_network(address))}"


def _name(name: str) -> str:
    return f"login-tries-at:{digest(_plain(name))}"


def _plain(name: str) -> str:
    return name.strip().casefold()


def _network(address: str) -> str:
    """Return the network of an IPv6 address: its owner has all 2**64 addresses."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:  # a proxy's own word for it
        return address
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped:
            return str(parsed.ipv4_mapped)
        return str(ip_network((parsed, 64), strict=False))
    return address
