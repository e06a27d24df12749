"""Looks at accepted rows beside each other, while the pump has others made.

It holds no slot of the server that makes the rows: what a look needs it takes by permits of its
own. Nothing of it is kept but the rows it rejects, so whoever takes over looks at all of them.
"""

import asyncio
import logging
from functools import partial

from django.db import OperationalError

from apps.batch.handlers import NotNow, Withdrawal
from apps.batch.models import BatchStatus
from apps.batch.pump.jobs import Job, Jobs
from apps.batch.store import store
from apps.batch.store.leases import Lease, LeaseLost
from apps.runtime.async_db import in_db

log = logging.getLogger(__name__)

# What could not be looked at is tried again after this.
AGAIN_SECONDS = 5.0
WRITE_AGAIN_SECONDS = 1.0


class Settling:
    def __init__(self, lease: Lease, jobs: Jobs, ended: asyncio.Event) -> None:
        """`ended` is set whenever a look has ended: the job may be done."""
        self._lease = lease
        self._jobs = jobs
        self._ended = ended

    def begin(self, group: asyncio.TaskGroup) -> None:
        """Starts a look at the rows of each job that has new ones."""
        for job in self._jobs:
            if job.unsettled and job.settling is None:
                job.settling = group.create_task(self._settle(job))
                job.settling.add_done_callback(partial(self._has_settled, job))

    def stop(self) -> None:
        for job in self._jobs:
            job.stop_settling()

    def _has_settled(self, job: Job, task: "asyncio.Task[None]") -> None:
        job.settling = None
        self._ended.set()

    async def _settle(self, job: Job) -> None:
        """Raises LeaseLost where another pump has taken over."""
        job.unsettled = False  # but not if a row is accepted meanwhile
        try:
            await self._look(job)
        except OperationalError as error:
            job.unsettled = True
            log.warning("The database is busy: %s", error)
        except LeaseLost:
            raise
        except Exception:
            log.exception("Comparing the rows of batch %s", job.id)
            reason = "Workbench error while comparing rows. Details are in the worker log."
            await self._jobs.set_aside([job.id], BatchStatus.FAILED, reason)

    async def _look(self, job: Job) -> None:
        assert job.afterwards is not None
        try:
            while (rows := await job.afterwards()) is not None:
                await self._withdraw(rows)
        except NotNow as why:
            job.unsettled = job.waits_to_settle = True
            await in_db(store.note, self._lease, str(why), [job.id])
            await asyncio.sleep(AGAIN_SECONDS)
            return
        if job.waits_to_settle:
            job.waits_to_settle = False
            await in_db(store.note, self._lease, "", [job.id])

    async def _withdraw(self, rows: list[Withdrawal]) -> None:
        """What is found out of a row is found out once: it has to be written."""
        while rows:
            try:
                return await in_db(store.withdraw, self._lease, rows)
            except OperationalError as error:
                log.warning("The database takes no rows just now: %s", error)
                await asyncio.sleep(WRITE_AGAIN_SECONDS)
