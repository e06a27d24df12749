"""Post-processing: compares accepted rows with each other while further rows run.

It holds no slot of the server that generates the rows; its own requests take permits. Only the
rows it rejects are stored, so another pump that takes over compares all rows again.
"""

import asyncio
import logging
from functools import partial

from django.db import OperationalError

from apps.batch.errors import PostProcessingBlocked
from apps.batch.handlers import LateRejection
from apps.batch.models import BatchStatus
from apps.batch.pump.active_job import ActiveJob
from apps.batch.pump.active_jobs import ActiveJobs
from apps.batch.store import job_writes
from apps.batch.store.leases import Lease, LeaseLost
from apps.runtime.async_db import in_db

log = logging.getLogger(__name__)

BLOCKED_RETRY_SECONDS = 5.0
WRITE_RETRY_SECONDS = 1.0


class PostProcessor:
    def __init__(self, lease: Lease, jobs: ActiveJobs, finished: asyncio.Event) -> None:
        """`finished` is set after each run: the job may be done."""
        self._lease = lease
        self._jobs = jobs
        self._finished = finished

    def start(self, group: asyncio.TaskGroup) -> None:
        """Start a run for each job with new accepted rows."""
        for job in self._jobs:
            if job.needs_post_processing and job.post_processing is None:
                job.post_processing = group.create_task(self._run(job))
                job.post_processing.add_done_callback(partial(self._run_finished, job))

    def stop(self) -> None:
        for job in self._jobs:
            job.stop_post_processing()

    def _run_finished(self, job: ActiveJob, task: "asyncio.Task[None]") -> None:
        job.post_processing = None
        self._finished.set()

    async def _run(self, job: ActiveJob) -> None:
        """Raises LeaseLost if another pump has taken over."""
        job.needs_post_processing = False  # a row accepted meanwhile sets it again
        try:
            await self._compare(job)
        except OperationalError as error:
            job.needs_post_processing = True
            log.warning("The database is busy: %s", error)
        except LeaseLost:
            raise
        except Exception:
            log.exception("Comparing the rows of batch %s", job.id)
            reason = "Workbench error while comparing rows. Details are in the worker log."
            await self._jobs.deactivate([job.id], BatchStatus.FAILED, reason)

    async def _compare(self, job: ActiveJob) -> None:
        assert job.post_process is not None
        try:
            while (rejections := await job.post_process()) is not None:
                await self._reject(rejections)
        except PostProcessingBlocked as why:
            job.needs_post_processing = job.post_processing_blocked = True
            await in_db(job_writes.set_job_wait_reason, self._lease, job.id, str(why))
            await asyncio.sleep(BLOCKED_RETRY_SECONDS)
            return
        if job.post_processing_blocked:
            job.post_processing_blocked = False
            await in_db(job_writes.set_job_wait_reason, self._lease, job.id, "")

    async def _reject(self, rejections: list[LateRejection]) -> None:
        """Write until it succeeds: the feature reports each rejection only once."""
        while rejections:
            try:
                return await in_db(job_writes.reject_late, self._lease, rejections)
            except OperationalError as error:
                log.warning("The database takes no rows just now: %s", error)
                await asyncio.sleep(WRITE_RETRY_SECONDS)
