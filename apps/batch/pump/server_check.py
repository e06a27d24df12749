"""Checks of the model server, and waiting until server, Redis and disk are available again."""

import asyncio
import logging
import time
from datetime import timedelta

from apps.batch.models import BatchStatus
from apps.batch.pump import state as pump_state
from apps.batch.pump.row_runner import waiting_for_server
from apps.batch.pump.state import PumpState
from apps.batch.store import disk_space, job_writes, leases, reads
from apps.runtime.async_db import in_db
from apps.servers.models import Server, State
from apps.servers.services import refresh_server

log = logging.getLogger(__name__)

CHECK_EVERY_SECONDS = 30.0

REJECTED_KEY = "The API key was rejected. Update it under Servers."


class ServerCheck:
    def __init__(self, state: PumpState) -> None:
        self._state = state

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
        if server.state == State.UNAUTHORIZED:
            await state.refresh_jobs(finish=False)
            reason = server.facts.error or REJECTED_KEY
            await state.jobs.deactivate(state.jobs.ids, BatchStatus.PAUSED, reason)
        elif server.state != State.READY:
            error = server.facts.error or "The model server is not ready."
            state.blocked_by = waiting_for_server(error)

    async def follow_address(self) -> None:
        """Use a new address or key from now on, with facts of the new server."""
        state = self._state
        known, server = state.server, await in_db(reads.server_of, state.lease.server_id)
        if known is None or server is None or _address(server) == _address(known):
            return
        state.server = server
        state.jobs.use_server(server)
        await self.check(max_age=timedelta(0))

    async def wait_until_available(self) -> None:
        """Wait for server, Redis and disk space. Jobs show the reason; no row loses an attempt."""
        state = self._state
        log.info("Server %s: %s", state.lease.server_id, state.blocked_by)
        while state.blocked_by and not state.is_over() and await state.refresh_jobs():
            await self.set_wait_reason(state.blocked_by)
            await self._sleep(state.breaker.next_pause())
            await self._check_disk()
            await self.check(max_age=timedelta(0))
        state.blocked_by = ""  # also if no job is left
        state.breaker.half_open()
        for job_id in state.jobs.ids:  # their model may be known only now
            state.jobs.forget(job_id)
        await state.refresh_jobs(finish=False)

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


def _address(server: Server) -> tuple[str, bytes | str | None]:
    return server.base_url, server.encrypted_key
