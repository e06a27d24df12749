"""The pumps of one process: a task for each model server with work, in one event loop.

A job never waits for a job of another server. Any number of processes may run pumps: the lease of a
server admits one pump, and the process with the fewest pumps asks for it first.
"""

import asyncio
import logging
import time
from contextlib import suppress

from asgiref.sync import ThreadSensitiveContext
from django.db import DatabaseError, connections
from redis.exceptions import RedisError

from apps.batch import pump_heartbeat, services
from apps.batch.pump.pump import run_pump
from apps.batch.pump.state import ShouldStop
from apps.batch.store import job_writes
from apps.llm.client import close_clients
from apps.runtime.async_db import in_db
from apps.runtime.redis import async_redis, close_async_redis

log = logging.getLogger(__name__)

# Finds jobs without a message: of a killed process, or queued while Redis was away.
POLL_SECONDS = 3.0
# Delay per pump that this process has already, so that another process takes the next one.
DELAY_PER_PUMP_SECONDS = 0.05
# First and longest pause after a pump that ended with an error; doubles each time.
RESTART_SECONDS = (2.0, 60.0)
FAILED = (
    "Workbench failed while working on this server's rows. Details are in the worker log. "
    "Next try in {seconds:.0f} s."
)


class PumpPool:
    def __init__(self, should_stop: ShouldStop) -> None:
        self._should_stop = should_stop
        self._pumps: dict[int, asyncio.Task[None]] = {}
        self._failures: dict[int, int] = {}
        self._not_before: dict[int, float] = {}
        self._wake_event = asyncio.Event()

    def wake(self) -> None:
        """Look for work now."""
        self._wake_event.set()

    async def run(self) -> None:
        """Run until `should_stop`; all leases are released then."""
        listener = asyncio.create_task(self._listen())
        try:
            while not self._should_stop():
                self._wake_event.clear()
                await self._start_pumps()
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._wake_event.wait()
                await asyncio.sleep(DELAY_PER_PUMP_SECONDS * len(self._pumps))
        finally:
            listener.cancel()
            await asyncio.gather(listener, *self._pumps.values(), return_exceptions=True)
            with suppress(RedisError, OSError):
                await pump_heartbeat.sign_off()
            await close_clients()
            await close_async_redis()

    async def _start_pumps(self) -> None:
        try:
            await pump_heartbeat.beat()
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
                self._pumps[server_id] = asyncio.create_task(self._run_pump(server_id))

    async def _run_pump(self, server_id: int) -> None:
        try:
            # Queries in their own thread: a slow one does not delay other pumps.
            async with ThreadSensitiveContext():
                try:
                    await run_pump(server_id, should_stop=self._should_stop)
                    self._failures.pop(server_id, None)
                except Exception:
                    log.exception("The pump of server %s", server_id)
                    await self._schedule_restart(server_id)
                finally:
                    await in_db(connections.close_all)
        finally:
            del self._pumps[server_id]

    async def _schedule_restart(self, server_id: int) -> None:
        """Show the error at the jobs and delay the next pump of the server."""
        first, longest = RESTART_SECONDS
        self._failures[server_id] = failures = self._failures.get(server_id, 0) + 1
        seconds = min(longest, first * 2.0 ** min(failures - 1, 16))
        self._not_before[server_id] = time.monotonic() + seconds
        with suppress(DatabaseError):
            await in_db(
                job_writes.set_server_wait_reason, server_id, FAILED.format(seconds=seconds)
            )

    async def _listen(self) -> None:
        """Wake on messages about new work. A missed message costs one pause."""
        while True:
            with suppress(RedisError, OSError):
                async with async_redis().pubsub() as pubsub:
                    await pubsub.subscribe(pump_heartbeat.CHANNEL)
                    async for _ in pubsub.listen():  # the first message confirms the subscription
                        self.wake()
            await asyncio.sleep(POLL_SECONDS)
