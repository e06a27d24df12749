"""How fast the jobs of one pump go: each one's course over time, and which width is best."""

import time
from collections.abc import Iterable

from apps.batch.handlers import Outcome
from apps.batch.pump.concurrency_probe import Trial
from apps.batch.pump.jobs import Job, Jobs
from apps.batch.pump.throughput import BUCKET_SECONDS, Meter
from apps.batch.store import store
from apps.batch.store.leases import Lease
from apps.batch.store.store import Row
from apps.runtime.async_db import in_db
from apps.servers.models import Server

# A job of fewer rows is over before a trial of widths has paid for itself.
TRIAL_ROWS = 200


class Measures:
    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._meter = Meter(time.time())
        self._trial: tuple[Job, Trial] | None = None

    # --- Rows ----------------------------------------------------------------

    def begun(self, row: Row) -> None:
        """Its request is on its way."""
        if self._trial is not None:
            self._trial[1].begun(row.pk, time.monotonic())

    def ended(self, row: Row, outcome: Outcome) -> None:
        """It was answered."""
        written = outcome.usage.completion_tokens
        self._meter.count(row.batch_id, written)
        if self._trial is not None:  # widths compare by an estimate just as well
            self._trial[1].ended(row.pk, written or outcome.tokens, time.monotonic())

    # --- The course ----------------------------------------------------------

    def tick(self, seconds: float, jobs: Iterable[Job]) -> None:
        """So many seconds have passed."""
        # Those at the server: who waits for a slot uses none.
        running = {job.id: job.held for job in jobs if job.held}
        self._meter.tick(time.time(), seconds, running)

    async def keep_now_and_then(self) -> None:
        if time.time() - self._meter.began >= BUCKET_SECONDS:
            await self.keep()

    async def keep(self) -> None:
        """Writes down what has come together since the last time."""
        if points := self._meter.take(time.time()):
            await in_db(store.keep_course, self._lease, points)

    # --- The width -----------------------------------------------------------

    def at_most(self, width: int) -> int:
        """How many rows may be in flight while a trial is on."""
        tried = self._trial[1].width if self._trial is not None else None
        return width if tried is None else min(width, tried)

    async def begin_trial(self, job: Job, jobs: Jobs, server: Server) -> None:
        """Measures which width is best, where that is not known and the job is alone."""
        slots = server.width(job.model)
        if job.width is not None or slots < 2:
            return
        known = await in_db(store.best_width, server.pk, job.model, slots)
        if known is not None:
            job.best = known if known < slots else None
        elif job.rows >= TRIAL_ROWS and len(jobs) == 1 and not server.swaps:
            self._trial = (job, Trial(slots, time.monotonic()))

    async def settle_trial(self, jobs: Jobs) -> None:
        """Keeps what a trial has found, or ends one that would measure something else."""
        if self._trial is None:
            return
        job, trial = self._trial
        if trial.width is None:
            self._trial = None
            if (result := trial.result(job.model)) is not None:
                job.best = result["best"] if result["best"] < trial.slots else None
                await in_db(store.keep_trial, self._lease, job.id, result)
        elif jobs.find(job.id) is not job or len(jobs) > 1 or job.width is not None:
            self._trial = None
