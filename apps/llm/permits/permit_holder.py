"""The permits of one process: renewed while held, given up when a person needs the slot.

One holder per event loop. It renews all its permits together, and subscribes to the servers' other
users: a slot is free, or a permit of ours was revoked.
"""

import asyncio
import logging
from collections import defaultdict
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from redis import asyncio as aioredis
from redis.commands.core import AsyncScript
from redis.exceptions import RedisError

from apps.llm.permits.keys import permit_key
from apps.llm.permits.permit import Permit, script_source
from apps.llm.permits.terms import LEASE_SECONDS, active_ms
from apps.llm.permits.totals import request_counts
from apps.llm.permits.waiters import Waiters
from apps.runtime.redis import async_redis

logger = logging.getLogger(__name__)

# A loop that is busy for longer than lease minus this finds its permits lapsed, and registers them
# again.
RENEW_SECONDS = 2.0
RECONNECT_SECONDS = 0.2
SUBSCRIBE_SECONDS = 1.0


class PermitHolder:
    """All permits of one event loop."""

    def __init__(self, redis: aioredis.Redis) -> None:
        self.redis = redis
        self.acquire = self._script("acquire")
        self.back_off = self._script("back_off")
        self._renew = self._script("renew")
        self._release = self._script("release")
        self._held: dict[str, Permit] = {}
        self._timer: asyncio.TimerHandle | None = None
        # A renewal that overtook a release would bring the permit back for the length of a lease.
        self._ordered = asyncio.Lock()
        self._channels: dict[bytes, int] = {}
        self._subscribed: dict[int, asyncio.Event] = defaultdict(asyncio.Event)
        self.waiters = Waiters()
        self._pubsub: aioredis.client.PubSub | None = None
        self._listener: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def _script(self, name: str) -> AsyncScript:
        return self.redis.register_script(script_source(name))

    # --- Permits -------------------------------------------------------------

    def register(self, permit: Permit) -> None:
        """Renew the permit from now on; it may be revoked if it has a holder."""
        self._held[permit.name] = permit
        if permit.revoked and permit.holder is not None:  # before its grant was known here
            permit.holder.cancel()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(RENEW_SECONDS, self._tick)

    async def release(self, permit: Permit) -> None:
        """Free the slot and count what the request cost. Without Redis the permit lapses."""
        self._held.pop(permit.name, None)
        counted = [part for pair in request_counts(permit).items() for part in pair]
        async with self._ordered:
            try:
                await self._release(
                    keys=[
                        permit_key(permit.server_id),
                        permit_key(permit.server_id, "people"),
                    ],
                    args=[permit.name, permit.person, active_ms(), *counted],
                )
            except (RedisError, OSError) as error:
                logger.warning("A permit will lapse, Redis does not answer: %s", error)

    def _tick(self) -> None:
        self._timer = None
        if self._held:
            self._timer = asyncio.get_running_loop().call_later(RENEW_SECONDS, self._tick)
            self._start(self.renew())

    def _start(self, coroutine: Any) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def renew(self, server_id: int | None = None) -> None:
        """Renew what is held, and give up what was revoked while nobody was subscribed."""
        async with self._ordered:
            by_server: dict[int, list[Permit]] = defaultdict(list)
            for permit in self._held.values():
                if server_id in {None, permit.server_id}:
                    by_server[permit.server_id].append(permit)
            for server, permits in by_server.items():
                arguments: list[str | int] = [int(LEASE_SECONDS * 1000)]
                for permit in permits:
                    arguments += [permit.name, permit.claim]
                try:
                    revoked = await self._renew(
                        keys=[permit_key(server), permit_key(server, "people")], args=arguments
                    )
                except (RedisError, OSError) as error:
                    logger.warning("Permits are not renewed, Redis does not answer: %s", error)
                    return
                for name in revoked:
                    self._revoke(server, name.decode())

    def _revoke(self, server_id: int, name: str) -> None:
        permit = self._held.get(name) or self.waiters.find(server_id, name)
        if permit is not None and not permit.revoked and permit.holder is not None:
            permit.revoked = True
            if name in self._held:
                permit.holder.cancel()

    # --- Messages of other processes -----------------------------------------

    async def subscribe(self, server_id: int) -> bool:
        """Return when no message about the server can be missed from now on.

        Returns:
            True if some may have been missed before.
        """
        subscribed = self._subscribed[server_id]
        if subscribed.is_set():
            return False
        channel = permit_key(server_id).encode()
        if channel not in self._channels:
            self._channels[channel] = server_id
            if self._listener is None:
                self._listener = asyncio.create_task(self._receive())
            elif self._pubsub is not None:
                with suppress(RedisError, OSError):
                    await self._pubsub.subscribe(channel)
        # Without Redis there is nothing to miss; a renewal finds out what was missed otherwise.
        with suppress(TimeoutError):
            async with asyncio.timeout(SUBSCRIBE_SECONDS):
                await subscribed.wait()
        return True

    async def _receive(self) -> None:
        while True:
            try:
                async with self.redis.pubsub() as self._pubsub:
                    await self._pubsub.subscribe(*self._channels)
                    async for message in self._pubsub.listen():
                        self._handle(message)
            except (RedisError, OSError):
                for subscribed in self._subscribed.values():
                    subscribed.clear()
            finally:
                self._pubsub = None
            if not self._held:  # the next subscriber starts another
                self._listener = None
                self._channels.clear()
                return
            await asyncio.sleep(RECONNECT_SECONDS)

    def _handle(self, message: dict[str, Any]) -> None:
        server_id = self._channels.get(message["channel"])
        if server_id is None:
            return
        if message["type"] == "subscribe":
            self._subscribed[server_id].set()
            # The first time, or again after the connection broke, Redis perhaps restarted empty.
            self._start(self.renew(server_id))
        elif message["type"] == "message" and message["data"].startswith(b"revoke:"):
            self._revoke(server_id, message["data"].removeprefix(b"revoke:").decode())
        elif message["type"] == "message" and message["data"].startswith(b"next:"):
            name = message["data"].removeprefix(b"next:").decode()
            self.waiters.wake_one(server_id, name)
        elif message["type"] == "message":
            self.waiters.wake(server_id)


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, PermitHolder] = WeakKeyDictionary()


def permit_holder() -> PermitHolder:
    """The holder of the running event loop."""
    loop, redis = asyncio.get_running_loop(), async_redis()
    found = _by_loop.get(loop)
    if found is None or found.redis is not redis:
        found = _by_loop[loop] = PermitHolder(redis)
    return found
