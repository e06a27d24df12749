"""State that the parts of a pump share."""

import asyncio
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager

from django.db import OperationalError

from apps.batch.pump.active_job import ActiveJob
from apps.batch.pump.active_jobs import ActiveJobs
from apps.batch.pump.metrics import PumpMetrics
from apps.batch.pump.wait_reason import WaitReasons
from apps.batch.pump.writer import Writer
from apps.batch.scheduler.circuit_breaker import CircuitBreaker
from apps.batch.store import disk_space
from apps.batch.store.leases import Lease
from apps.batch.store.row_events import PendingRow, RowEvent, Started
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.services import WidthMeter

WATCH_SECONDS = 1.0

ShouldStop = Callable[[], bool]


class PumpState:
    def __init__(self, lease: Lease, should_stop: ShouldStop) -> None:
        self.lease = lease
        self._should_stop = should_stop
        self.stopping = False
        self.server: Server | None = None
        self.jobs = ActiveJobs(lease)
        self.rows: dict[asyncio.Task[RowEvent], PendingRow] = {}
        """Rows in flight by their task."""
        self.without_slot: set[asyncio.Task[RowEvent]] = set()
        """Tasks of `rows` that wait for a permit."""
        self.answers = 0
        """Rows that the server answered."""
        self.reserved = 0
        """Slots that rows leave free for another request of the pump."""
        self.wake_dispatcher = asyncio.Event()
        self.blocked_by = ""
        """Why no row starts, as a sentence; "" if nothing is in the way."""
        self.shown_reason = ""
        """The same as the jobs show it, until rows surely continue."""
        self.metrics = PumpMetrics(lease)
        self.widths = WidthMeter()
        self.wait_reasons = WaitReasons(lease, self.jobs)
        self.breaker = CircuitBreaker()
        self.writer = Writer(lease, on_written=self._event_written)

    def is_over(self) -> bool:
        self.stopping = self.stopping or self._should_stop()
        return self.stopping

    def width(self, model: str) -> int:
        """Return the max rows in flight for a model."""
        assert self.server is not None
        width = self.metrics.limit_width(self.widths.width(self.server, model))
        limit = self.breaker.max_in_flight
        return (width if limit is None else min(width, limit)) - self.reserved

    async def refresh_jobs(self, *, finish: bool = True) -> bool:
        """Bring the jobs in step with the database. Returns True if any is active."""
        with self.noting_full_disk():
            for job in await self.jobs.refresh(self.server, finish=finish):
                assert self.server is not None  # jobs are added with a server only
                await self.metrics.start_probe(job, self.jobs, self.server)
            return bool(len(self.jobs))
        return True  # unknown: the disk is full

    async def check_disk(self) -> None:
        self.blocked_by = self.blocked_by or await in_db(disk_space.low_space_reason)

    @contextmanager
    def noting_full_disk(self) -> Iterator[None]:
        """Block further rows on the error of a full disk; other errors pass."""
        try:
            yield
        except OperationalError as error:
            if not disk_space.is_full(error):
                raise
            self.blocked_by = disk_space.FULL

    def cancel_waiting_rows(self, batch_ids: Container[int]) -> None:
        """Cancel the rows of these jobs that wait for a slot."""
        for task, row in list(self.rows.items()):
            if row.batch_id in batch_ids and task in self.without_slot:
                task.cancel()

    def cancel_rows(self, batch_ids: Container[int]) -> None:
        """Close the requests of these jobs; their rows start again."""
        for task, row in list(self.rows.items()):
            if row.batch_id in batch_ids:
                task.cancel()

    async def cancel_all_rows(self) -> None:
        """Close all requests, which frees their slots."""
        tasks = list(self.rows)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def jobs_of_model(self, model: str) -> list[ActiveJob]:
        return [job for job in self.jobs if job.model == model]

    def _event_written(self, event: RowEvent) -> None:
        if isinstance(event, Started):
            return
        self.jobs.row_written(event)
        self.wake_dispatcher.set()
