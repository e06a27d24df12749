"""The reason why a job has no slot although its server is available, shown at the job."""

import time
from collections.abc import Sequence

from redis.exceptions import RedisError

from apps.batch.models import SLOWED_DOWN
from apps.batch.pump.active_job import ActiveJob
from apps.batch.pump.active_jobs import ActiveJobs
from apps.batch.store import job_writes
from apps.batch.store.leases import Lease
from apps.llm import errors
from apps.llm.permits import RECOVER_SECONDS, describe_backoff, read_occupancy
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.services import slot_terms

# A shorter wait for a slot is not reported.
MIN_WAIT_SECONDS = 2.0
# Each 429 lowers the number of parallel requests by one for this long.
SLOWED_SECONDS = RECOVER_SECONDS

HELD_BACK = {
    "slots": "Waiting for a free slot: all slots of the server are in use.",
    "people": "Waiting for a free slot: people are using the server.",
    "tokens": "Waiting: the next row does not fit into the context that the slots share now.",
    "restarted": "Waiting: Redis was restarted. Rows continue in a second.",
}
TURN = "Waiting for its turn: other jobs use the slots of this server."
SLOT = "Waiting for a free slot."


class WaitReasons:
    def __init__(self, lease: Lease, jobs: ActiveJobs) -> None:
        self._lease = lease
        self._jobs = jobs

    async def refresh(self, server: Server) -> None:
        """Set the reasons of waiting jobs and clear those of the others."""
        now = time.monotonic()
        for job in list(self._jobs):
            if job.post_processing_blocked:
                continue  # shows another reason already
            if job.wait_until > now:
                await self.set_reason(job.waits_for, [job])
            elif job.refused_until > now:
                await self.set_reason(await self._refusal(server, job), [job])
            elif _is_waiting(job, now):
                await self.set_reason(await self._slot_reason(server, job), [job])
            elif job.slots_held:
                await self.set_reason("", [job])

    def record_refusal(self, job: ActiveJob, error: errors.LLMError) -> None:
        """Note that the server accepts fewer requests than were sent."""
        job.refusal, job.refused_until = str(error), time.monotonic() + SLOWED_SECONDS

    async def set_reason(self, reason: str, jobs: Sequence[ActiveJob]) -> None:
        """Store the reason of the jobs that show another one."""
        changed = [job for job in jobs if job.wait_reason != reason]
        if changed:
            ids = [job.id for job in changed]
            await in_db(job_writes.set_wait_reason, self._lease, reason, ids)
        for job in changed:
            job.wait_reason = reason

    async def _refusal(self, server: Server, job: ActiveJob) -> str:
        try:
            limit = (await read_occupancy(slot_terms(server, job.model))).limit
        except (RedisError, OSError):
            limit = None
        width = "" if limit is None else f" Max {limit} at once for now."
        return f"{SLOWED_DOWN}{job.refusal}{width}"

    async def _slot_reason(self, server: Server, job: ActiveJob) -> str:
        if not job.running and any(other.slots_held for other in self._jobs if other is not job):
            return TURN
        try:
            reason = (await read_occupancy(slot_terms(server, job.model))).wait_reason
        except (RedisError, OSError):
            return "Waiting for Redis: it does not answer."
        return HELD_BACK.get(reason) or describe_backoff(reason) or SLOT


def _is_waiting(job: ActiveJob, now: float) -> bool:
    has_rows = bool(job.ready) or job.running > 0
    return has_rows and not job.slots_held and now - job.last_held_at >= MIN_WAIT_SECONDS
