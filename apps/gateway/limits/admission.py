"""Admits requests within the limits of their key and person, counted over all processes."""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, time, timedelta
from functools import cache
from pathlib import Path

from django.utils import timezone
from redis.exceptions import RedisError

from apps.core.models import ApiKey
from apps.gateway.errors import GatewayError
from apps.gateway.limits.limits import ScopedLimits, limits_of
from apps.runtime.per_loop import PerLoop
from apps.runtime.redis import async_redis

# The places of a process that ended are free after so long.
LEASE_MS = 30_000
RENEW_SECONDS = 10.0
SCRIPTS = Path(__file__).parent

logger = logging.getLogger(__name__)


@asynccontextmanager
async def admitted(key: ApiKey, tokens: Callable[[], int]) -> AsyncIterator[None]:
    """Hold a place among the requests in flight.

    Args:
        tokens: returns, at the end, what the request came to.

    Raises:
        GatewayError: a limit is reached.
        RedisError
    """
    limits = limits_of(key)
    name = uuid.uuid4().hex
    try:
        await _admit(name, limits)
    except (GatewayError, RedisError):
        raise
    except BaseException:  # it left meanwhile: it may have its places
        await _end(name, limits, 0)
        raise
    flights = _flights.get()
    flights.add(name, [_key("flight", one.scope) for one in limits if one.in_flight])
    try:
        yield
    finally:
        flights.discard(name)
        await _end(name, limits, tokens())


async def _admit(name: str, limits: Sequence[ScopedLimits]) -> None:
    keys, terms = [], []
    for one in limits:
        keys += [_key("times", one.scope), _tokens_key(one.scope), _key("flight", one.scope)]
        terms += [one.requests_per_minute, one.tokens_per_day, one.in_flight]
    script = async_redis().register_script(_source("admit"))
    reached = await script(keys=keys, args=[name, LEASE_MS, *(term or "" for term in terms)])
    if reached:
        scope, what, milliseconds = reached
        raise _refusal(limits[scope - 1], what.decode(), milliseconds / 1000)


def _refusal(limits: ScopedLimits, what: str, seconds: float) -> GatewayError:
    if what == "tokens":
        used = f"may use {limits.tokens_per_day:,} tokens a day, which are used."
        detail = f"{limits.subject} {used} Send requests again after midnight UTC."
        return GatewayError(429, "token_limit_reached", detail, retry_after=_until_midnight())
    if what == "in_flight":
        detail = f"{limits.subject} may have {_requests(limits.in_flight)} in flight."
        detail += " Wait until one has ended."
        return GatewayError(429, "too_many", detail, retry_after=seconds)
    detail = f"{limits.subject} may send {_requests(limits.requests_per_minute)} a minute."
    detail += f" Send the next one in {max(1, round(seconds))} s."
    return GatewayError(429, "rate_limit_exceeded", detail, retry_after=max(1.0, seconds))


def _requests(number: int | None) -> str:
    return "1 request" if number == 1 else f"{number:,} requests"


def _until_midnight() -> float:
    now = timezone.localtime()
    tomorrow = datetime.combine(now.date() + timedelta(days=1), time(), now.tzinfo)
    return max(1.0, (tomorrow - now).total_seconds())


async def _end(name: str, limits: Sequence[ScopedLimits], tokens: int) -> None:
    keys = []
    for one in limits:
        keys += [_tokens_key(one.scope), _key("flight", one.scope)]
    counts = ["1" if one.tokens_per_day else "" for one in limits]
    try:
        await async_redis().register_script(_source("end"))(keys=keys, args=[name, tokens, *counts])
    except (RedisError, OSError) as error:
        logger.warning("A place among the requests in flight will lapse: %s", error)


class Flights:
    """The requests in flight of one event loop: their places are renewed while they last."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = {}
        self._renewal: asyncio.Task[None] | None = None

    def add(self, name: str, keys: list[str]) -> None:
        self._places[name] = keys
        if self._renewal is None:
            self._renewal = asyncio.create_task(self._renew())

    def discard(self, name: str) -> None:
        self._places.pop(name, None)
        if not self._places and self._renewal is not None:
            self._renewal.cancel()
            self._renewal = None

    async def close(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                await self.renew()
            except (RedisError, OSError) as error:
                logger.warning("Places of requests in flight are not renewed: %s", error)

    async def renew(self) -> None:
        """Renew all places now.

        Raises:
            RedisError
        """
        pairs = [(key, name) for name, keys in self._places.items() for key in keys]
        script = async_redis().register_script(_source("renew"))
        await script(keys=[key for key, _ in pairs], args=[LEASE_MS, *(name for _, name in pairs)])
        for key, name in pairs:
            if name not in self._places:  # it ended meanwhile, perhaps before it was renewed
                await async_redis().zrem(key, name)


_flights = PerLoop(Flights, Flights.close)


def _key(part: str, scope: str) -> str:
    return f"gateway:{part}:{scope}"


def _tokens_key(scope: str) -> str:
    return _key("tokens", f"{scope}:{timezone.localdate().isoformat()}")


@cache
def _source(name: str) -> str:
    return (SCRIPTS / f"{name}.lua").read_text()
