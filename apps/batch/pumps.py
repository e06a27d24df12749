"""All pumps of one process: a task for each model server with work, side by side in one loop.

A job so never waits for another server's job to end. Any number of processes may do this: the
lease of a server lets one pump work, and the process with the fewest pumps asks for it first.
"""

import asyncio
import logging
import time
from contextlib import suppress

from asgiref.sync import ThreadSensitiveContext
from django.db import DatabaseError, connections
from redis.exceptions import RedisError

from apps.batch import presence, services
from apps.batch.pump import pump
from apps.batch.store import store
from apps.llm.client import close_clients
from apps.runtime.async_db import in_db
from apps.runtime.redis import async_redis, close_async_redis

log = logging.getLogger(__name__)

# What no message told of: jobs of a process that was killed, or queued while Redis was away.
LOOK_SECONDS = 3.0
# A process with pumps already lets others have the next one: so much later for each it has.
LATER_SECONDS = 0.05
# A pump that ended with an error starts again after so long, then twice as long each time.
AGAIN_SECONDS = (2.0, 60.0)
FAILED = (
    "Workbench failed while working on this server's rows. Details are in the worker log. "
    "Next try in {seconds:.0f} s."
)


class Pumps:
    def __init__(self, should_stop: pump.Stop) -> None:
        self._should_stop = should_stop
        self._pumps: dict[int, asyncio.Task[None]] = {}
        self._failures: dict[int, int] = {}
        self._not_before: dict[int, float] = {}
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Looks for work now instead of after the pause."""
        self._woken.set()

    async def run(self) -> None:
        """Until `should_stop`; every pump has given its lease back then."""
        listener = asyncio.create_task(self._listen())
        try:
            while not self._should_stop():
                self._woken.clear()
                await self._look()
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._woken.wait()
                await asyncio.sleep(LATER_SECONDS * len(self._pumps))
        finally:
            listener.cancel()
            await asyncio.gather(listener, *self._pumps.values(), return_exceptions=True)
            with suppress(RedisError, OSError):
                await presence.leave()
            await close_clients()
            await close_async_redis()

    async def _look(self) -> None:
        try:
            await presence.tell()
        except (RedisError, OSError) as error:
            log.warning("Redis does not answer: %s", error)
        try:
            waiting = await in_db(services.servers_to_wake)
        except DatabaseError as error:
            log.warning("The database does not answer, looking again: %s", error)
            return
        now = time.monotonic()
        for server_id in waiting:
            if server_id not in self._pumps and self._not_before.get(server_id, now) <= now:
                self._pumps[server_id] = asyncio.create_task(self._pump(server_id))

    async def _pump(self, server_id: int) -> None:
        try:
            # A thread of its own for its queries: one that has to wait holds up no other pump.
            async with ThreadSensitiveContext():
                try:
                    await pump.run(server_id, should_stop=self._should_stop)
                    self._failures.pop(server_id, None)
                except Exception:
                    log.exception("The pump of server %s", server_id)
                    await self._rest(server_id)
                finally:
                    await in_db(connections.close_all)
        finally:
            del self._pumps[server_id]

    async def _rest(self, server_id: int) -> None:
        """After an error of ours: the jobs say so, and the next pump starts a little later."""
        first, longest = AGAIN_SECONDS
        self._failures[server_id] = failures = self._failures.get(server_id, 0) + 1
        seconds = min(longest, first * 2.0 ** min(failures - 1, 16))
        self._not_before[server_id] = time.monotonic() + seconds
        with suppress(DatabaseError):
            await in_db(store.note_all, server_id, FAILED.format(seconds=seconds))

    async def _listen(self) -> None:
        """Is woken by who queues a job. A message that is missed costs a pause, no more."""
        while True:
            with suppress(RedisError, OSError):
                async with async_redis().pubsub() as pubsub:
                    await pubsub.subscribe(presence.CHANNEL)
                    async for _ in pubsub.listen():  # the first one says that it listens now
                        self.wake()
            await asyncio.sleep(LOOK_SECONDS)
