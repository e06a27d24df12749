"""The permits of one process: kept alive while held, given up when a person needs the slot.

One desk an event loop. It renews all its permits together, and listens to what the servers' other
users say: that a slot is free, or that a permit of ours has been taken back.
"""

import asyncio
import logging
import math
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from redis import asyncio as aioredis
from redis.commands.core import AsyncScript
from redis.exceptions import RedisError

from apps.llm.events import Usage
from apps.runtime.redis import async_redis

logger = logging.getLogger(__name__)

# Permits of a process that was killed are gone after the lease; a loop that is busy for longer
# than the difference finds its permits gone and registers them again.
LEASE_SECONDS = 8.0
RENEW_SECONDS = 2.0
RECONNECT_SECONDS = 0.2
SUBSCRIBE_SECONDS = 1.0
LIFE_SECONDS = 1.0

SCRIPTS = Path(__file__).parent


def key(server_id: int, part: str = "") -> str:
    """Of a server's permits, and of what else is kept about them, in Redis."""
    name = f"slots:{{{server_id}}}"
    return f"{name}:{part}" if part else name


@cache
def _source(name: str) -> str:
    return "\n".join((SCRIPTS / f"{part}.lua").read_text() for part in ("entries", name))


@dataclass(eq=False, slots=True)
class Permit:
    """One request's right to a slot."""

    name: str
    server_id: int
    claim: str
    """As in Redis, in JSON."""
    person: str = ""
    holder: "asyncio.Task[Any] | None" = None
    usage: Usage | None = None
    taken: bool = False
    """A person needed the slot: the holder has been cancelled."""

    def used(self, usage: Usage) -> None:
        """What the request cost, for the server's statistics."""
        self.usage = usage


class Desk:
    def __init__(self, redis: aioredis.Redis) -> None:
        self.redis = redis
        self.take = self._script("take")
        self.narrow = self._script("narrow")
        self._renew = self._script("renew")
        self._release = self._script("release")
        self._held: dict[str, Permit] = {}
        self._timer: asyncio.TimerHandle | None = None
        # A renewal that overtook a release would bring the permit back for the length of a lease.
        self._in_order = asyncio.Lock()
        self._channels: dict[bytes, int] = {}
        self._subscribed: dict[int, asyncio.Event] = defaultdict(asyncio.Event)
        self._news: dict[int, asyncio.Event] = defaultdict(asyncio.Event)
        self._pubsub: aioredis.client.PubSub | None = None
        self._listener: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._life: dict[int, float] = {}

    def _script(self, name: str) -> AsyncScript:
        return self.redis.register_script(_source(name))

    # --- Permits -------------------------------------------------------------

    def hold(self, permit: Permit) -> None:
        """From now on the permit is renewed, and may be taken back if it has a holder."""
        self._held[permit.name] = permit
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(RENEW_SECONDS, self._tick)

    def sees_life(self, server_id: int) -> bool:
        """Whether an answer that came is worth telling: one a second is."""
        now = time.monotonic()
        if now - self._life.get(server_id, -math.inf) < LIFE_SECONDS:
            return False
        self._life[server_id] = now
        return True

    async def give_back(self, permit: Permit, *, idle_ms: int) -> None:
        self._held.pop(permit.name, None)
        cost = permit.usage
        counted = (
            [
                *(1, cost.prompt_tokens, cost.cached_tokens, cost.completion_tokens),
                cost.prompt_tokens if cost.tells_cached else 0,
            ]
            if cost is not None
            else [0, 0, 0, 0, 0]
        )
        async with self._in_order:
            try:
                await self._release(
                    keys=[key(permit.server_id), key(permit.server_id, "people")],
                    args=[permit.name, permit.person, idle_ms, *counted],
                )
            except (RedisError, OSError) as error:
                logger.warning("A permit will lapse, Redis does not answer: %s", error)

    def _tick(self) -> None:
        self._timer = None
        if self._held:
            self._timer = asyncio.get_running_loop().call_later(RENEW_SECONDS, self._tick)
            self._soon(self.renew())

    def _soon(self, coroutine: Any) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def renew(self, server_id: int | None = None) -> None:
        """Renews what is held, and gives up what was taken back while nobody listened."""
        async with self._in_order:
            by_server: dict[int, list[Permit]] = defaultdict(list)
            for permit in self._held.values():
                if server_id in {None, permit.server_id}:
                    by_server[permit.server_id].append(permit)
            for server, permits in by_server.items():
                arguments: list[str | int] = [int(LEASE_SECONDS * 1000)]
                for permit in permits:
                    arguments += [permit.name, permit.claim]
                try:
                    taken = await self._renew(
                        keys=[key(server), key(server, "people")], args=arguments
                    )
                except (RedisError, OSError) as error:
                    logger.warning("Permits are not renewed, Redis does not answer: %s", error)
                    return
                for name in taken:
                    self._yield(name.decode())

    def _yield(self, name: str) -> None:
        permit = self._held.get(name)
        if permit is not None and not permit.taken and permit.holder is not None:
            permit.taken = True
            permit.holder.cancel()

    # --- Listening -----------------------------------------------------------

    def news(self, server_id: int) -> asyncio.Event:
        """Set when a slot of the server may have become free; ask for a new one afterwards."""
        return self._news[server_id]

    async def listen(self, server_id: int) -> None:
        """Returns when nothing that is said about the server from now on can be missed."""
        subscribed = self._subscribed[server_id]
        if subscribed.is_set():
            return
        channel = key(server_id).encode()
        if channel not in self._channels:
            self._channels[channel] = server_id
            if self._listener is None:
                self._listener = asyncio.create_task(self._listen())
            elif self._pubsub is not None:
                with suppress(RedisError, OSError):
                    await self._pubsub.subscribe(channel)
        # Without Redis there is nothing to miss; a renewal finds out what was missed otherwise.
        with suppress(TimeoutError):
            async with asyncio.timeout(SUBSCRIBE_SECONDS):
                await subscribed.wait()

    async def _listen(self) -> None:
        while True:
            try:
                async with self.redis.pubsub() as self._pubsub:
                    await self._pubsub.subscribe(*self._channels)
                    async for message in self._pubsub.listen():
                        self._hear(message)
            except (RedisError, OSError):
                for subscribed in self._subscribed.values():
                    subscribed.clear()
            finally:
                self._pubsub = None
            if not self._held:  # the next who needs to know starts anew
                self._listener = None
                self._channels.clear()
                return
            await asyncio.sleep(RECONNECT_SECONDS)

    def _hear(self, message: dict[str, Any]) -> None:
        server_id = self._channels.get(message["channel"])
        if server_id is None:
            return
        if message["type"] == "subscribe":
            self._subscribed[server_id].set()
            # The first time, or again after the connection broke, Redis perhaps restarted empty.
            self._soon(self.renew(server_id))
        elif message["type"] == "message" and message["data"].startswith(b"yield:"):
            self._yield(message["data"].removeprefix(b"yield:").decode())
        elif message["type"] == "message":
            self._news.pop(server_id, asyncio.Event()).set()


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Desk] = WeakKeyDictionary()


def desk() -> Desk:
    """The desk of the running event loop."""
    loop, redis = asyncio.get_running_loop(), async_redis()
    found = _by_loop.get(loop)
    if found is None or found.redis is not redis:
        found = _by_loop[loop] = Desk(redis)
    return found
