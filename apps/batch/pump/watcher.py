"""Watches every second what people do with the jobs, and keeps the lease."""

import asyncio
import logging
import time

from django.db import OperationalError

from apps.batch.models import BatchStatus
from apps.batch.pump import state as pump_state
from apps.batch.pump.post_processing import PostProcessor
from apps.batch.pump.server_check import CHECK_EVERY_SECONDS, ServerCheck
from apps.batch.pump.state import PumpState
from apps.batch.store import job_writes, reads
from apps.runtime.async_db import in_db

log = logging.getLogger(__name__)


class Watcher:
    def __init__(self, state: PumpState, server_check: ServerCheck, post: PostProcessor) -> None:
        self._state = state
        self._server_check = server_check
        self._post_processor = post

    async def run(self, group: asyncio.TaskGroup) -> None:
        """Watch until cancelled. Post-processing runs in `group`."""
        state = self._state
        checked = last = time.monotonic()
        while True:
            await asyncio.sleep(pump_state.WATCH_SECONDS)
            now = time.monotonic()
            state.metrics.add_time(now - last, state.jobs)
            last = now
            try:
                await self._follow_changes()
            except OperationalError as error:
                log.warning("The database is busy: %s", error)
                continue
            if time.monotonic() - checked >= CHECK_EVERY_SECONDS and not state.blocked_by:
                checked = time.monotonic()
                await self._server_check.check()
            for job in state.jobs:
                job.exhausted = False  # the time of a waiting row may have come
            state.breaker.record_quiet_second()
            if state.shown_reason and state.breaker.is_trusted and not state.blocked_by:
                await self._server_check.set_wait_reason("")
            self._post_processor.start(group)
            state.wake_dispatcher.set()

    async def _follow_changes(self) -> None:
        state = self._state
        await self._server_check.follow_address()
        await self._apply_job_changes()
        await state.metrics.finish_probe(state.jobs)
        await state.metrics.store_due_points()
        if state.server is not None and not state.blocked_by:
            await state.wait_reasons.refresh(state.server)
        await state.check_disk()

    async def _apply_job_changes(self) -> None:
        """Start no row of a paused job; close the requests of a cancelled or deleted one."""
        state = self._state
        state.jobs.rows_added(await in_db(job_writes.enforce_policies, state.lease))
        # A job may be over while others keep the slots busy.
        over = any(job.exhausted and not job.ready and not job.running for job in state.jobs)
        await state.refresh_jobs(finish=over)
        inactive = {row.batch_id for row in state.rows.values()} - set(state.jobs.ids)
        if not inactive:
            return
        state.cancel_waiting_rows(inactive)
        statuses = await in_db(reads.statuses_of, list(inactive))
        for task, row in list(state.rows.items()):
            deleted = row.batch_id in inactive and row.batch_id not in statuses
            if deleted or statuses.get(row.batch_id) == BatchStatus.CANCELLED:
                task.cancel()
