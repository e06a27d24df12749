"""Commits what becomes of rows, in order, while the pump goes on with the next ones.

In a thread of its own: a commit must not wait behind a read. After each commit the connection is
handed back as Django's settings say: SQLite's stays with the thread, since opening it costs more
than the commit, and PostgreSQL's goes back to the pool, which the pumps of many servers share.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import InterfaceError, OperationalError, close_old_connections, connection

from apps.batch.store import disk_space, store
from apps.batch.store.leases import Lease, LeaseLost
from apps.batch.store.store import Entry, PutBack, Started

log = logging.getLogger(__name__)

T = TypeVar("T")

# A result waits until the next row is on its way to the server: putting a transaction together
# takes as long as that, and both at once in one interpreter would keep the slot idle for twice the
# time.
RESULT_SECONDS = 0.02
# So long what has started may wait for a result to be committed with.
STARTED_SECONDS = 0.2
MOST_AT_ONCE = 64
UNSTORABLE = "not_storable"
RETRY_SECONDS = 1.0


class Writer:
    def __init__(self, lease: Lease, *, on_written: Callable[[Entry], None]) -> None:
        self._lease = lease
        self._on_written = on_written
        self._entries: deque[Entry] = deque()
        self._to_write = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Task[None] | None = None
        self._is_ending = False
        self.is_out_of_room = False
        """The last commit failed because the database's disk is full. It is tried again."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")

    @property
    def is_behind(self) -> bool:
        """Whether something is not committed yet."""
        return bool(self._entries)

    def record(self, entry: Entry) -> None:
        """To be committed, after all that was recorded before."""
        self._entries.append(entry)
        self._write_within(STARTED_SECONDS if isinstance(entry, Started) else RESULT_SECONDS)

    async def run(self) -> None:
        """Commits until `finish` is called. A commit that has begun is not cancelled with this.

        Raises:
            LeaseLost: another pump has taken over; nothing more is written.
        """
        self._work = asyncio.create_task(self._write_on())
        await asyncio.shield(self._work)

    async def finish(self) -> None:
        """Commits what is left and gives the connection back."""
        self._is_ending = True
        self._write_within(0)
        try:
            await (self._work or self._write_on())
        finally:
            self._stop_timer()
            await self._in_thread(_close_connection)
            self._thread.shutdown()

    async def _write_on(self) -> None:
        while self._entries or not self._is_ending:
            await self._to_write.wait()
            self._to_write.clear()
            self._stop_timer()
            entries = list(self._entries)[:MOST_AT_ONCE]
            if entries:
                await self._commit(entries)
            for entry in entries:
                self._entries.popleft()
                self._on_written(entry)
            if self._entries and (self._is_ending or len(entries) == MOST_AT_ONCE):
                self._to_write.set()

    def _write_within(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is None or self._timer.when() > loop.time() + seconds:
            self._stop_timer()
            self._timer = loop.call_later(seconds, self._to_write.set)

    async def _commit(self, entries: list[Entry]) -> None:
        while True:
            try:
                await self._in_thread(lambda: _write(self._lease, entries))
                self.is_out_of_room = False
                return
            except (OperationalError, InterfaceError) as error:  # locked, disk full, restarted
                log.warning("The database takes no rows just now: %s", error)
                self.is_out_of_room = disk_space.is_full(error)
                await self._in_thread(_close_connection)
                await asyncio.sleep(RETRY_SECONDS)
            except LeaseLost:
                raise
            except Exception as error:  # a value that the database does not take, whatever it is
                return await self._commit_apart(entries, error)

    async def _commit_apart(self, entries: list[Entry], error: Exception) -> None:
        """The one entry that cannot be written fails; the others are written without it."""
        if len(entries) > 1:
            for entry in entries:
                await self._commit([entry])
            return
        [entry] = entries
        if isinstance(entry, PutBack) and entry.code == UNSTORABLE:
            raise error  # no value of the row is in this one: it is not the row's fault
        log.error("Row %s of batch %s", entry.row.index, entry.row.batch_id, exc_info=error)
        reason = f"The database does not take what the model wrote: {error}"
        await self._commit([PutBack(entry.row, reason, UNSTORABLE, permanent=True)])

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _write(lease: Lease, entries: list[Entry]) -> None:
    try:
        store.write(lease, entries)
    finally:
        close_old_connections()


def _close_connection() -> None:
    """That of the thread which calls it."""
    connection.close()
