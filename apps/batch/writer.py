"""Commits what becomes of rows, in order, while the pump goes on with the next ones.

In a thread and on a database connection of its own, for as long as a pump works: a new connection
for each commit costs more than the commit, and a commit must not wait behind a read.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import OperationalError, connection

from apps.batch import ledger
from apps.batch.leases import Lease
from apps.batch.ledger import Entry, Started

log = logging.getLogger(__name__)

T = TypeVar("T")

# So long what has started may wait for a result to be committed with. A result never waits.
STARTED_SECONDS = 0.2
MOST_AT_ONCE = 64
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
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")

    @property
    def is_behind(self) -> bool:
        """Whether something is not committed yet."""
        return bool(self._entries)

    def record(self, entry: Entry) -> None:
        """To be committed, after all that was recorded before."""
        self._entries.append(entry)
        if not isinstance(entry, Started):
            self._to_write.set()
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(STARTED_SECONDS, self._to_write.set)

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
        self._to_write.set()
        try:
            await (self._work or self._write_on())
        finally:
            self._stop_timer()
            await self._in_thread(_close_connection)
            self._thread.shutdown()

    async def _write_on(self) -> None:
        while not self._is_ending or self._entries:
            await self._to_write.wait()
            await self._write_all()

    async def _write_all(self) -> None:
        self._to_write.clear()
        self._stop_timer()
        while self._entries:
            entries = list(self._entries)[:MOST_AT_ONCE]
            await self._commit(entries)
            for entry in entries:
                self._entries.popleft()
                self._on_written(entry)

    async def _commit(self, entries: list[Entry]) -> None:
        while True:
            try:
                return await self._in_thread(lambda: ledger.write(self._lease, entries))
            except OperationalError as error:  # locked for longer than the timeout, disk full
                log.warning("The database takes no rows just now: %s", error)
                await self._in_thread(_close_connection)
                await asyncio.sleep(RETRY_SECONDS)

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _close_connection() -> None:
    """That of the thread which calls it."""
    connection.close()
