"""The pump of a model server: keeps its slots busy with the rows of all running jobs.

A dispatcher starts a row as soon as a slot is free. Beside it a reader fetches the next rows, a
writer commits results and a watcher follows pause, resume and cancel, so that no slot waits for the
database. All state is in the rows: another pump that takes the lease continues from them.
"""

import asyncio
import logging
import math
import time
from contextlib import suppress
from datetime import timedelta
from functools import partial

from apps.batch.pump import state as pump_state
from apps.batch.pump.active_job import ActiveJob
from apps.batch.pump.post_processing import PostProcessor
from apps.batch.pump.row_runner import RowRunner, event_of
from apps.batch.pump.slot_warmer import SlotWarmer
from apps.batch.pump.state import PumpState, ShouldStop
from apps.batch.pump.watcher import ServerCheck, Watcher
from apps.batch.scheduler import fair_queue
from apps.batch.store import claims, disk_space, job_writes, leases, reads
from apps.batch.store.leases import Lease, LeaseLost
from apps.batch.store.row_events import Finished, PendingRow, RowEvent
from apps.runtime.async_db import in_db

log = logging.getLogger(__name__)

READ_AHEAD_ROWS = 64


async def run_pump(
    server_id: int, *, seconds: float = math.inf, should_stop: ShouldStop = lambda: False
) -> bool:
    """Run a server's jobs until none is left, however long a row takes.

    Does nothing while another pump holds the lease. Returns True if work is left because of
    `should_stop` or the time limit.
    """
    deadline = time.monotonic() + seconds

    def is_over() -> bool:
        return should_stop() or time.monotonic() >= deadline

    while await in_db(reads.has_work, server_id) or await in_db(reads.has_orphans, server_id):
        if is_over():
            return True
        lease = await in_db(leases.acquire, server_id)
        if lease is None:
            return False
        lost = False
        try:
            await Pump(lease, should_stop=is_over).run()
        except* LeaseLost as errors:
            log.warning("%s", errors.exceptions[0])
            lost = True
        finally:
            with suppress(LeaseLost):
                await in_db(claims.release_all_rows, lease)
            await in_db(leases.release, lease)
        if lost:
            return False
        # Checks again after the release: a job queued just before found the lease held.
    return False


class Pump:
    def __init__(self, lease: Lease, *, should_stop: ShouldStop) -> None:
        self._state = state = PumpState(lease, should_stop)
        self._queue = fair_queue.FairQueue()
        self._model = ""
        """Model of the last started row."""
        self._read_requested = asyncio.Event()
        self._is_reading = False
        self._runner = RowRunner(state)
        self._server_check = ServerCheck(state)
        self._warmer = SlotWarmer(state)
        self._post_processor = PostProcessor(lease, state.jobs, state.wake_dispatcher)
        self._watcher = Watcher(state, self._server_check, self._post_processor)

    async def run(self) -> None:
        """Run until no job is active or the pump has to stop.

        Raises:
            ExceptionGroup[LeaseLost]: another pump has taken over; all requests were closed.
        """
        state = self._state
        recovered = await in_db(job_writes.recover_rows, state.lease)
        if recovered:
            log.info("%s rows of an earlier pump start again.", recovered)
        async with asyncio.TaskGroup() as group:
            parts = (state.writer.run(), self._read(), self._watcher.run(group))
            helpers = [group.create_task(part) for part in parts]
            try:
                await self._dispatch()
            finally:
                await self._warmer.stop()
                await state.cancel_all_rows()
                await state.writer.finish()  # also while everything around is cancelled
            await state.metrics.store_points()
            await state.metrics.finish_probe(state.jobs)  # one that ended with the job
            if state.server is not None:
                await state.widths.save(state.server)
            for helper in helpers:
                helper.cancel()
            self._post_processor.stop()

    # --- Dispatching ---------------------------------------------------------

    async def _dispatch(self) -> None:
        state = self._state
        await state.check_disk()
        await self._server_check.check(max_age=timedelta(0))
        while not state.is_over():
            state.wake_dispatcher.clear()
            if state.blocked_by or state.writer.is_out_of_space:
                state.blocked_by = state.blocked_by or disk_space.FULL
                await self._server_check.wait_until_available()
                continue
            if self._warmer.tasks:
                self._warmer.cancel_inactive()
            self._start_rows()
            self._request_read()
            if not self._is_busy() and not await state.refresh_jobs():
                return
            self._request_read()
            await _wait(state.wake_dispatcher, pump_state.WATCH_SECONDS / 2)

    def _is_busy(self) -> bool:
        """True if something under way will wake the dispatcher."""
        state = self._state
        rows_ready = any(job.ready for job in state.jobs)
        return rows_ready or bool(state.rows) or state.writer.is_behind or self._is_reading

    def _start_rows(self) -> None:
        while startable := {job.id: job for job in self._startable()}:
            job = startable[self._queue.pick({job.id: job.weight for job in startable.values()})]
            if len(self._state.rows) >= self._state.width(job.model):
                return
            self._start_row(job)

    def _startable(self) -> list[ActiveJob]:
        state = self._state
        startable = state.jobs.startable(state.server, self._model, in_flight=bool(state.rows))
        if any(job.shared_request or job.is_warming for job in startable):
            return self._warmer.hold_back(startable)
        return startable

    def _start_row(self, job: ActiveJob) -> None:
        row = job.ready.popleft()
        self._model = job.model
        if not job.running:
            job.active_since = time.monotonic()
        job.running += 1
        task = asyncio.create_task(self._runner.run(job, row))
        self._state.rows[task] = row
        self._state.without_slot.add(task)
        charged = self._queue.charge(job.id)
        job.charged += charged
        task.add_done_callback(partial(self._row_done, job, row, charged))

    def _row_done(
        self, job: ActiveJob, row: PendingRow, charged: float, task: "asyncio.Task[RowEvent]"
    ) -> None:
        """Settle a row in a callback, which also sees a task cancelled before it began."""
        state = self._state
        del state.rows[task]
        state.without_slot.discard(task)
        job.running -= 1
        event = event_of(task, row, stopping=state.stopping)
        tokens = charged
        if isinstance(event, Finished):  # recorded by its runner
            tokens = event.outcome.tokens
            job.spent_today += tokens
        else:
            state.writer.record(event)
        job.charged -= charged
        self._queue.correct(job.id, charged=charged, tokens=tokens)
        state.wake_dispatcher.set()

    # --- Reading ahead -------------------------------------------------------

    def _request_read(self) -> None:
        """Have rows read before the last ones are gone."""
        if not self._is_reading and self._state.jobs.low_on_rows(self._state.width):
            self._is_reading = True
            self._read_requested.set()

    async def _read(self) -> None:
        jobs, width = self._state.jobs, self._state.width
        while True:
            await self._read_requested.wait()
            self._read_requested.clear()
            for job in jobs.low_on_rows(width):
                await jobs.read_rows(job, job.ready_limit(width(job.model), READ_AHEAD_ROWS))
            self._is_reading = False
            self._state.wake_dispatcher.set()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
