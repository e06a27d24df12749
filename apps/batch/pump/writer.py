"""Commits row events in order while the pump continues with the next rows.

In its own thread: a commit must not wait behind a read. After each commit Django's settings decide
about the connection: SQLite's stays with the thread, since opening it costs more than a commit;
PostgreSQL's returns to the pool, which the pumps of many servers share.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import InterfaceError, OperationalError, close_old_connections, connection

from apps.batch.store import disk_space, row_writes
from apps.batch.store.leases import Lease, LeaseLost
from apps.batch.store.row_events import Returned, RowEvent, Started

log = logging.getLogger(__name__)

T = TypeVar("T")

# A result waits until the next row is sent: preparing a transaction takes as long as sending, and
# both at once in one interpreter would keep the slot idle twice as long.
RESULT_SECONDS = 0.02
# A start waits up to this long to be committed together with a result.
STARTED_SECONDS = 0.2
MAX_EVENTS = 64
UNSTORABLE = "not_storable"
RETRY_SECONDS = 1.0


class Writer:
    def __init__(self, lease: Lease, *, on_written: Callable[[RowEvent], None]) -> None:
        self._lease = lease
        self._on_written = on_written
        self._events: deque[RowEvent] = deque()
        self._to_write = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.Task[None] | None = None
        self._is_ending = False
        self.is_out_of_space = False
        """The last commit failed because the database's disk is full. It is tried again."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="row-writer")

    @property
    def is_behind(self) -> bool:
        """True if events wait for their commit."""
        return bool(self._events)

    def record(self, event: RowEvent) -> None:
        """Add an event to be committed after the earlier ones."""
        self._events.append(event)
        self._write_within(STARTED_SECONDS if isinstance(event, Started) else RESULT_SECONDS)

    async def run(self) -> None:
        """Commit until `finish` is called. Cancelling this does not cancel a commit.

        Raises:
            LeaseLost: another pump has taken over; nothing more is written.
        """
        self._loop = asyncio.create_task(self._commit_loop())
        await asyncio.shield(self._loop)

    async def finish(self) -> None:
        """Commit the remaining events and close the connection."""
        self._is_ending = True
        self._write_within(0)
        try:
            await (self._loop or self._commit_loop())
        finally:
            self._stop_timer()
            await self._in_thread(_close_connection)
            self._thread.shutdown()

    async def _commit_loop(self) -> None:
        while self._events or not self._is_ending:
            await self._to_write.wait()
            self._to_write.clear()
            self._stop_timer()
            events = list(self._events)[:MAX_EVENTS]
            if events:
                await self._commit(events)
            for event in events:
                self._events.popleft()
                self._on_written(event)
            if self._events and (self._is_ending or len(events) == MAX_EVENTS):
                self._to_write.set()

    def _write_within(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is None or self._timer.when() > loop.time() + seconds:
            self._stop_timer()
            self._timer = loop.call_later(seconds, self._to_write.set)

    async def _commit(self, events: list[RowEvent]) -> None:
        while True:
            try:
                await self._in_thread(lambda: _write(self._lease, events))
                self.is_out_of_space = False
                return
            except (OperationalError, InterfaceError) as error:  # locked, disk full, restarted
                log.warning("The database takes no rows just now: %s", error)
                self.is_out_of_space = disk_space.is_full(error)
                await self._in_thread(_close_connection)
                await asyncio.sleep(RETRY_SECONDS)
            except LeaseLost:
                raise
            except Exception as error:  # a value that the database does not take, whatever it is
                return await self._commit_one_by_one(events, error)

    async def _commit_one_by_one(self, events: list[RowEvent], error: Exception) -> None:
        """Write the events apart, so that only the one the database refuses fails."""
        if len(events) > 1:
            for event in events:
                await self._commit([event])
            return
        [event] = events
        if isinstance(event, Returned) and event.code == UNSTORABLE:
            raise error  # this event holds no value of the row: not the row's fault
        log.error("Row %s of batch %s", event.row.index, event.row.batch_id, exc_info=error)
        reason = f"The database does not take what the model wrote: {error}"
        await self._commit([Returned(event.row, reason, UNSTORABLE, permanent=True)])

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _write(lease: Lease, events: list[RowEvent]) -> None:
    try:
        row_writes.write_events(lease, events)
    finally:
        close_old_connections()


def _close_connection() -> None:
    """Close the connection of the calling thread."""
    connection.close()
