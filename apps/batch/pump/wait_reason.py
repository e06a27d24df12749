"""Why none of a job's rows is at the server although the server is there: said at the job."""

import time
from collections.abc import Sequence

from redis.exceptions import RedisError

from apps.batch.pump.jobs import Job, Jobs
from apps.batch.store import store
from apps.batch.store.leases import Lease
from apps.llm import errors
from apps.llm.permits import RECOVER_SECONDS, describe_backoff, read_occupancy
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.services import slot_terms

# A row that gets its slot sooner did not wait.
PATIENCE_SECONDS = 2.0
# Each refusal takes one request at once off the width for so long.
SLOWED_SECONDS = RECOVER_SECONDS

HELD_BACK = {
    "slots": "Waiting for a free slot: all slots of the server are in use.",
    "people": "Waiting for a free slot: people are using the server.",
    "tokens": "Waiting: the next row does not fit into the context that the slots share now.",
    "restarted": "Waiting: Redis was restarted. Rows continue in a second.",
}
TURN = "Waiting for its turn: other jobs use the slots of this server."
SLOT = "Waiting for a free slot."


class Reasons:
    def __init__(self, lease: Lease, jobs: Jobs) -> None:
        self._lease = lease
        self._jobs = jobs

    async def look(self, server: Server) -> None:
        """Says why jobs wait, and takes it back of those that no longer do."""
        now = time.monotonic()
        for job in list(self._jobs):
            if job.waits_until > now or job.waits_to_settle:
                continue  # it says already what is in the way
            if job.refused_until > now:
                await self.say(await self._slowed(server, job), [job])
            elif _waits(job, now):
                await self.say(await self._why(server, job), [job])
            elif job.held:
                await self.say("", [job])

    def refused(self, job: Job, error: errors.LLMError) -> None:
        """The server takes fewer requests than were sent."""
        job.refusal, job.refused_until = str(error), time.monotonic() + SLOWED_SECONDS

    async def say(self, reason: str, jobs: Sequence[Job]) -> None:
        """At the jobs, where it is news."""
        news = [job for job in jobs if job.says != reason]
        if news:
            await in_db(store.note, self._lease, reason, [job.id for job in news])
        for job in news:
            job.says = reason

    async def _slowed(self, server: Server, job: Job) -> str:
        """It refused a request lately: what it said, and to how many at once it was cut down."""
        try:
            limit = (await read_occupancy(slot_terms(server, job.model))).limit
        except (RedisError, OSError):
            limit = None
        width = "" if limit is None else f" Max {limit} at once for now."
        return f"Slowed down: {job.refusal}{width}"

    async def _why(self, server: Server, job: Job) -> str:
        if not job.running and any(other.held for other in self._jobs if other is not job):
            return TURN
        try:
            reason = (await read_occupancy(slot_terms(server, job.model))).wait_reason
        except (RedisError, OSError):
            return "Waiting for Redis: it does not answer."
        return HELD_BACK.get(reason) or describe_backoff(reason) or SLOT


def _waits(job: Job, now: float) -> bool:
    has_rows = bool(job.ready) or job.running > 0
    return has_rows and not job.held and now - job.held_at >= PATIENCE_SECONDS
