"""The servers of the jobs of one pump: who takes part, and whether it has the same model."""

import asyncio
from functools import partial

from redis.exceptions import RedisError

from apps.batch.jobs.dispatch import wake_pump
from apps.batch.jobs.job_servers import assign_servers
from apps.batch.models import Batch, BatchServer, BatchStatus
from apps.batch.pump.active_job import ActiveJob
from apps.batch.pump.row_runner import waiting_for_server
from apps.batch.pump.state import PumpState
from apps.batch.store import job_writes
from apps.llm import errors
from apps.llm.permits import ModelInUse, SlotTaken
from apps.runtime.async_db import in_db
from apps.servers.models import Server, State
from apps.servers.services import Target, ask_canary, model_difference, refresh_server

NOT_COMPARED = "Waiting: the job's own server has to answer first, to compare their models."


class JobServers:
    def __init__(self, state: PumpState) -> None:
        self._state = state
        self._checks: dict[int, asyncio.Task[None]] = {}
        """Checks in progress by batch."""
        self._probe: asyncio.Task[None] | None = None

    async def assign(self) -> None:
        """Enter servers that were added, and wake their pumps."""
        for server_id in await in_db(assign_servers, self._state.lease):
            await in_db(wake_pump, server_id)

    def start_checks(self, group: asyncio.TaskGroup) -> None:
        """Compare the model of this server with that of each job's own server.

        For a job of all servers, others that were not ready are probed: they may serve it by now.
        """
        if any(job.wants_all_servers for job in self._state.jobs) and (
            self._probe is None or self._probe.done()
        ):
            self._probe = group.create_task(_probe_unready())
        for job in self._state.jobs:
            is_due = job.is_shared and not job.is_checked and not job.is_resting
            if is_due and job.id not in self._checks:
                self._checks[job.id] = task = group.create_task(self._check(job))
                task.add_done_callback(partial(self._check_done, job.id))

    def _check_done(self, batch_id: int, task: "asyncio.Task[None]") -> None:
        del self._checks[batch_id]
        self._state.wake_dispatcher.set()

    async def _check(self, job: ActiveJob) -> None:
        """Let the server work on the job, or leave it out with the reason."""
        state = self._state
        if state.blocked_by:
            return
        try:
            reason = await self._difference(job)
        except (ModelInUse, SlotTaken, RedisError):
            return  # again in a second
        except errors.Unreachable as error:
            state.blocked_by = waiting_for_server(error)
            return
        except errors.LLMError as error:
            reason = str(error)
        if state.jobs.find(job.id) is not job:
            return
        if reason is None:
            await state.wait_reasons.set_reason(NOT_COMPARED, [job])
        elif reason:
            await state.jobs.leave_or_deactivate(job, BatchStatus.PAUSED, reason)
        else:
            job.is_checked = True
            await in_db(job_writes.set_wait_reason, state.lease, "", [job.id])

    async def _difference(self, job: ActiveJob) -> str | None:
        """Return why the server cannot do the job; "" if it can, None if that is unknown yet."""
        server = self._state.server
        home = await in_db(_home_target, job.id)
        if server is None or home is None or job.is_fallback:
            return ""
        own = Target(server, job.model)
        if job.is_home:
            if job.model not in server.facts.canaries:
                await self._ask_canary(own)
            return ""
        difference = model_difference(home, own)
        if difference is None and home.model in home.server.facts.canaries:
            difference = model_difference(home, own, await self._ask_canary(own))
        return difference

    async def _ask_canary(self, target: Target) -> str:
        """Ask on a slot that rows leave free for it."""
        self._state.reserved += 1
        try:
            return await ask_canary(target)
        finally:
            self._state.reserved -= 1


async def _probe_unready() -> None:
    """Probe servers that are not ready, each as often as its last failures allow."""
    for server in await in_db(lambda: list(Server.objects.exclude(state=State.READY))):
        await refresh_server(server)


def _home_target(batch_id: int) -> Target | None:
    """The job's own server and model there; None if it was removed."""
    batch = Batch.objects.select_related("server").defer("spec").get(pk=batch_id)
    if batch.server is None:
        return None
    own = BatchServer.objects.filter(batch=batch, server=batch.server).first()
    return Target(batch.server, own.model if own else batch.model)
