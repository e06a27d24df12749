"""Holds the first rows of a job back while slots are filled with what all its rows begin with.

Where the server saves slots as files, that beginning is processed once and not once for each slot.
"""

import asyncio
import logging
from functools import partial

from django.db import DatabaseError
from redis.exceptions import RedisError

from apps.batch.pump.active_job import ActiveJob
from apps.batch.pump.state import PumpState
from apps.llm.client import ChatRequest
from apps.llm.errors import LLMError
from apps.llm.permits import ModelInUse, SlotTaken
from apps.servers.services import Target, warm_slots

log = logging.getLogger(__name__)


class SlotWarmer:
    def __init__(self, state: PumpState) -> None:
        self._state = state
        self.tasks: dict[int, asyncio.Task[None]] = {}
        """By batch."""

    def hold_back(self, jobs: list[ActiveJob]) -> list[ActiveJob]:
        """Return those of the jobs whose rows may start; for the others slots are being warmed."""
        for job in jobs:
            if job.shared_request is not None:
                self._start(job, job.shared_request)
                job.shared_request = None
        return [job for job in jobs if not job.is_warming]

    def cancel_inactive(self) -> None:
        """Stop warming for jobs that were paused, cancelled or deleted."""
        for batch_id, task in self.tasks.items():
            if self._state.jobs.find(batch_id) is None:
                task.cancel()

    async def stop(self) -> None:
        tasks = list(self.tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, job: ActiveJob, request: ChatRequest) -> None:
        server = self._state.server
        assert server is not None
        target = Target(server, job.model)
        limits = [self._state.width(job.model), len(job.ready)]
        width = min(limits if job.width is None else [*limits, job.width])
        if width < 2 or not target.saves_slots or job.id in self.tasks:
            return
        job.is_warming = True
        self.tasks[job.id] = task = asyncio.create_task(_warm(job, target, request, width))
        task.add_done_callback(partial(self._done, job))

    def _done(self, job: ActiveJob, task: "asyncio.Task[None]") -> None:
        del self.tasks[job.id]
        job.is_warming = False
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("Warming slots for batch %s", job.id, exc_info=error)
        self._state.wake_dispatcher.set()


async def _warm(job: ActiveJob, target: Target, request: ChatRequest, width: int) -> None:
    """Warm the slots; a failure costs nothing: the rows show it, or do without."""
    try:
        restored = await warm_slots(target, request, width=width, owner=job.owner)
        log.info("Batch %s begins with %s restored slots.", job.id, restored)
    except (LLMError, SlotTaken, ModelInUse, RedisError, DatabaseError) as error:
        log.info("Slots are not warmed for batch %s: %s", job.id, error)
