"""Follows, every second, what people do with the jobs and how server and disk are.

Each look also renews the lease.
"""

import asyncio
import logging
import time
from contextlib import suppress
from datetime import timedelta

from django.db import OperationalError
from redis.exceptions import RedisError

from apps.batch.models import BatchStatus
from apps.batch.pump import state as pump_state
from apps.batch.pump.job_servers import JobServers
from apps.batch.pump.post_processing import PostProcessor
from apps.batch.pump.row_runner import waiting_for_server
from apps.batch.pump.state import PumpState
from apps.batch.store import disk_space, job_writes, leases, reads
from apps.llm.permits import Lane, permits_in_flight
from apps.runtime.async_db import in_db
from apps.servers.models import Server, State
from apps.servers.services import refresh_server

log = logging.getLogger(__name__)

Address = tuple[str, bytes | str | None]
"""Address and encrypted key."""

CHECK_EVERY_SECONDS = 30.0

REJECTED_KEY = "The API key was rejected. Update it under Servers."


class ServerCheck:
    def __init__(self, state: PumpState) -> None:
        self._state = state
        self._address: Address | None = None
        """Where the rows of the jobs are sent."""

    async def check(self, *, max_age: timedelta = timedelta(seconds=CHECK_EVERY_SECONDS)) -> None:
        """Refresh the facts of the server; a rejected key pauses all jobs."""
        state = self._state
        server = await in_db(reads.server_of, state.lease.server_id)
        if server is None:  # removed, and with it the server of its jobs
            state.stopping = True
            return
        with state.noting_full_disk():
            server = await refresh_server(server, max_age=max_age)
        state.server = server
        self._address = self._address or _address(server)
        if server.state == State.UNAUTHORIZED:
            await state.refresh_jobs(finish=False)
            reason = server.facts.error or REJECTED_KEY
            for job in list(state.jobs):
                if not job.is_resting:
                    await state.jobs.leave_or_deactivate(job, BatchStatus.PAUSED, reason)
        elif server.state != State.READY:
            error = server.facts.error or "The model server is not ready."
            state.blocked_by = waiting_for_server(error)

    async def follow_changes(self) -> None:
        """Use what people change from now on: width, address and key, with facts of a new server.

        What other processes learn of the server counts as well.
        """
        state = self._state
        if (known := state.server) is None:
            return
        await state.widths.save(known)
        server = await in_db(reads.server_of, state.lease.server_id)
        if server is None:
            return
        state.server = server
        await self._follow_people(server)
        if _address(server) != self._address:
            self._address = _address(server)
            state.jobs.use_server(server)
            await self.check(max_age=timedelta(0))

    async def _follow_people(self, server: Server) -> None:
        """Start fewer rows while people use a server for which that was measured."""
        has_people = False
        if server.facts.best_widths:
            with suppress(RedisError, OSError):
                has_people = (await permits_in_flight(server.pk))[Lane.INTERACTIVE] > 0
        for job in self._state.jobs:
            job.mixed_width = server.mixed_width_of(job.model) if has_people else None

    async def wait_until_available(self) -> None:
        """Wait for server, Redis and disk space. Jobs show the reason; no row loses an attempt."""
        state = self._state
        log.info("Server %s: %s", state.lease.server_id, state.blocked_by)
        while state.blocked_by and not state.is_over():
            self._leave_rows_to_others()
            if not await state.refresh_jobs():
                break
            await self.set_wait_reason(state.blocked_by)
            await self._sleep(state.breaker.next_pause())
            await self._check_disk()
            await self.check(max_age=timedelta(0))
        state.blocked_by = ""  # also if no job is left
        state.breaker.half_open()
        state.widths.pause()
        for job_id in state.jobs.ids:  # their model may be known only now
            state.jobs.forget(job_id)
        await state.refresh_jobs(finish=False)

    def _leave_rows_to_others(self) -> None:
        """Give up the rows of jobs that other servers work on."""
        state = self._state
        shared = [job for job in state.jobs if job.is_shared]
        state.jobs.drop_ready_rows(shared)
        if state.server is not None and state.server.state == State.UNREACHABLE:
            state.cancel_rows({job.id for job in shared})

    async def set_wait_reason(self, reason: str) -> None:
        """Show a reason at the jobs; a full disk may not even take that."""
        with self._state.noting_full_disk():
            await in_db(job_writes.set_wait_reason, self._state.lease, reason)
            self._state.shown_reason = reason

    async def _sleep(self, seconds: float) -> None:
        """Sleep until the time is up or the pump has to stop."""
        until = time.monotonic() + seconds
        # `should_stop` is a function, not an event.
        while (left := until - time.monotonic()) > 0 and not self._state.is_over():  # noqa: ASYNC110
            await asyncio.sleep(min(left, pump_state.WATCH_SECONDS / 2))

    async def _check_disk(self) -> None:
        """Check that the database takes rows, by a small write where nothing else tells."""
        state = self._state
        state.blocked_by = await in_db(disk_space.low_space_reason)
        if state.writer.is_out_of_space:
            state.blocked_by = disk_space.FULL
        elif not state.blocked_by:
            with state.noting_full_disk():
                await in_db(leases.renew, state.lease)


class Watcher:
    def __init__(self, state: PumpState, server_check: ServerCheck, post: PostProcessor) -> None:
        self._state = state
        self._server_check = server_check
        self._post_processor = post
        self._job_servers = JobServers(state)

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
                if time.monotonic() - checked >= CHECK_EVERY_SECONDS and not state.blocked_by:
                    checked = time.monotonic()
                    await self._server_check.check()
                for job in state.jobs:
                    job.exhausted = False  # the time of a waiting row may have come
                state.breaker.record_quiet_second()
                if state.shown_reason and state.breaker.is_trusted and not state.blocked_by:
                    await self._server_check.set_wait_reason("")
            except OperationalError as error:
                log.warning("The database is busy: %s", error)
                continue
            self._post_processor.start(group)
            self._job_servers.start_checks(group)
            state.wake_dispatcher.set()

    async def _follow_changes(self) -> None:
        state = self._state
        await self._server_check.follow_changes()
        await self._job_servers.assign()
        await self._apply_job_changes()
        await state.metrics.finish_probe(state.jobs)
        await state.metrics.store_due_points()
        if state.server is not None:
            await state.widths.save(state.server)
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


def _address(server: Server) -> Address:
    return server.base_url, server.encrypted_key
