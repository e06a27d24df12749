"""One pump per model server: it keeps every slot busy with the rows of all running jobs.

A dispatcher starts a row the moment a slot is free; beside it a reader has the next rows ready and
a writer commits what became of the others, so that no slot waits for the database; a watcher sees
pause, resume and cancel. Whoever takes the lease later finds in the rows all there is to know.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from django.db import OperationalError
from redis.exceptions import RedisError

from apps.batch import handlers, leases, ledger
from apps.batch.handlers import Context, Handler, Work
from apps.batch.leases import Lease, LeaseLost
from apps.batch.ledger import Entry, Finished, PutBack, Row, Started
from apps.batch.models import BatchStatus
from apps.batch.turns import Turns
from apps.batch.writer import Writer
from apps.core.db import in_db
from apps.llm import errors, slots
from apps.llm.models import Server, State
from apps.llm.services import look_at, target
from apps.llm.slots import Lane, ModelInUse, SlotTaken, permit

log = logging.getLogger(__name__)

Stop = Callable[[], bool]

# A Celery message that runs long is delivered a second time (Redis: after an hour).
SLICE_SECONDS = 600.0
DRAIN_SECONDS = 60.0
WATCH_SECONDS = 1.0
LOOK_EVERY_SECONDS = 30.0
READ_AHEAD_ROWS = 64
BACKOFF_SECONDS = 2.0
BACKOFF_LIMIT_SECONDS = 60.0
AWAY_SECONDS = (0.5, 10.0)
# A server that refuses a request without saying for how long is asked again after this.
REFUSED_SECONDS = 1.0
# So long the jobs of a model wait before they ask again whether another one is still in use.
OTHER_MODEL_SECONDS = 2.0
# So many rows in a row that can never succeed: it is the job, not the row.
SAME_FAILURES = 20

# The row is not to blame and nothing was done for it: no attempt is counted, the pump waits.
NOT_THE_ROW = (errors.Unreachable, errors.Loading)
# No row of this job can succeed until a person has changed something.
NOT_THIS_JOB = (errors.Unauthorized, errors.UnknownModel, errors.NotSupported)


async def run(
    server_id: int,
    *,
    seconds: float = SLICE_SECONDS,
    should_stop: Stop = lambda: False,
) -> bool:
    """Works off a server's jobs until there are none or the slice is over.

    Does nothing while another pump holds the server's lease. Returns whether there is more to do.
    """
    deadline = time.monotonic() + seconds
    while await in_db(ledger.has_work, server_id) or await in_db(ledger.has_orphans, server_id):
        if should_stop() or time.monotonic() >= deadline:
            return True
        lease = await in_db(leases.take, server_id)
        if lease is None:
            return False
        replaced = False
        try:
            await Pump(lease, deadline=deadline, should_stop=should_stop).work()
        except* LeaseLost as lost:
            log.warning("%s", lost.exceptions[0])
            replaced = True
        finally:
            await in_db(leases.give_back, lease)
        if replaced:
            return False
        # Looks again after giving the lease back: a job that was queued just before found it held.
    return False


@dataclass
class Job:
    """An active batch as the pump knows it."""

    id: int
    name: str
    owner: int
    weight: int
    width: int | None
    """How many of its rows may be in flight; None: as many as the server has slots."""
    handler: Handler
    context: Context
    row_tokens: int
    """The most tokens one of its requests may come to."""
    ready: deque[Row] = field(default_factory=deque)
    running: int = 0
    dry: bool = False
    """No pending row was left when last asked."""
    since: float = 0.0
    """Until when the time it worked is on its account."""
    failures: int = 0
    """Permanent failures since a row last came through."""
    waits_until: float = 0.0
    """Another model is in use until then at least, where only some fit at once."""

    @property
    def model(self) -> str:
        return self.context.model


class Pump:
    def __init__(self, lease: Lease, *, deadline: float, should_stop: Stop) -> None:
        self.lease = lease
        self._deadline = deadline
        self._should_stop = should_stop
        self._stopping = False
        self._server: Server | None = None
        self._jobs: dict[int, Job] = {}
        self._turns = Turns()
        self._tasks: dict[asyncio.Task[Entry], Row] = {}
        self._taken: set[int] = set()  # rows read ahead, running or not yet written
        self._writer = Writer(lease, on_written=self._was_written)
        self._something = asyncio.Event()  # for the dispatcher
        self._to_read = asyncio.Event()
        self._is_reading = False
        self._away: errors.LLMError | None = None
        self._model = ""
        """Whose rows started last: where only some models fit at once, its are the next ones."""

    async def work(self) -> None:
        """Until no job is active, the slice is over or a stop was asked for.

        Raises:
            ExceptionGroup[LeaseLost]: another pump has taken over; all requests were closed.
        """
        lost = await in_db(ledger.recover, self.lease)
        if lost:
            log.info("%s rows of an earlier pump start again.", lost)
        async with asyncio.TaskGroup() as group:
            work = (self._writer.run(), self._read(), self._watch())
            helpers = [group.create_task(part) for part in work]
            try:
                await self._dispatch()
                await self._drain()
            finally:
                await self._close_streams()
                await self._writer.finish()  # also when everything is being cancelled around us
            for helper in helpers:
                helper.cancel()

    # --- Dispatching ---------------------------------------------------------

    async def _dispatch(self) -> None:
        await self._look(max_age=timedelta(0))
        while not self._is_over():
            self._something.clear()
            if self._away is not None:
                await self._wait_for_server()
                continue
            self._start_rows()
            self._read_ahead()
            if not self._is_at_work() and not await self._find_jobs():
                return
            self._read_ahead()
            await _wait(self._something, WATCH_SECONDS / 2)

    def _is_at_work(self) -> bool:
        """Whether anything is under way that will make the dispatcher look again."""
        rows_wait = any(job.ready for job in self._jobs.values())
        return rows_wait or bool(self._tasks) or self._writer.is_behind or self._is_reading

    def _is_over(self) -> bool:
        self._stopping = self._stopping or self._should_stop() or time.monotonic() >= self._deadline
        return self._stopping

    def _start_rows(self) -> None:
        while ready := self._jobs_whose_turn_it_is():
            job = self._jobs[self._turns.pick({job.id: job.weight for job in ready})]
            if len(self._tasks) >= self._width(job.model):
                return
            row = job.ready.popleft()
            self._model = job.model
            if not job.running:
                job.since = time.monotonic()
            job.running += 1
            task = asyncio.create_task(self._ask(job, row))
            self._tasks[task] = row
            charged = self._turns.start(job.id)
            task.add_done_callback(partial(self._row_is_over, job, row, charged))

    def _width(self, model: str) -> int:
        assert self._server is not None
        return self._server.width(model)

    def _jobs_with_rows(self) -> list[Job]:
        return [
            job
            for job in self._jobs.values()
            if job.ready and (job.width is None or job.running < job.width)
        ]

    def _jobs_whose_turn_it_is(self) -> list[Job]:
        """All with rows; where only some models fit at once, those of one model after the other.

        A job on another model would have the server unload this one and load it again.
        """
        ready = self._jobs_with_rows()
        if self._server is None or not self._server.swaps:
            return ready
        now = time.monotonic()
        ready = [job for job in ready if job.waits_until <= now]
        same = [job for job in ready if job.model == self._model]
        if same or self._tasks:
            return same
        loaded = [job for job in ready if job.model in self._server.loaded_models]
        return loaded or ready

    # --- Reading ahead -------------------------------------------------------

    def _read_ahead(self) -> None:
        """Has rows fetched before the last ones are gone."""
        if not self._is_reading and self._low():
            self._is_reading = True
            self._to_read.set()

    def _low(self) -> list[Job]:
        return [
            job
            for job in self._jobs.values()
            if not job.dry and len(job.ready) < 2 * self._width(job.model)
        ]

    async def _read(self) -> None:
        while True:
            await self._to_read.wait()
            self._to_read.clear()
            for job in self._low():
                limit = max(READ_AHEAD_ROWS, 4 * self._width(job.model))
                skip = frozenset(self._taken)
                job.dry = True  # but not if a row is put back meanwhile
                rows = await in_db(ledger.pending, job.id, limit=limit, skip=skip)
                job.dry = job.dry and len(rows) < limit
                if self._jobs.get(job.id) is job:  # not paused meanwhile
                    job.ready.extend(rows)
                    self._taken.update(row.pk for row in rows)
            self._is_reading = False
            self._something.set()

    # --- One row -------------------------------------------------------------

    async def _ask(self, job: Job, row: Row) -> Entry:
        work = Work(row.index, row.attempts + 1, row.input)
        assert self._server is not None
        try:
            async with permit(
                self._server,
                lane=Lane.BATCH,
                model=job.model,
                tokens=job.row_tokens,
                label=job.name,
                owner=job.owner,
            ) as held:
                self._writer.record(Started(row, job.model))
                outcome = await job.handler(work, job.context)
                held.used(outcome.usage)
        except SlotTaken:
            return PutBack(row)
        except ModelInUse as error:
            await self._wait_for_model(job, error.model)
            return PutBack(row)
        except errors.LLMError as error:
            return await self._judge(job, row, error)
        except RedisError as error:
            self._away = errors.Unreachable(f"Redis does not answer: {error}.")
            return PutBack(row)
        job.failures = 0
        return Finished(row, outcome, self._worked(job))

    def _worked(self, job: Job) -> float:
        now = time.monotonic()
        worked, job.since = now - job.since, now
        return worked

    async def _judge(self, job: Job, row: Row, error: errors.LLMError) -> PutBack:
        """What an error means: for the server, for the job, or for this row alone."""
        if isinstance(error, NOT_THE_ROW):
            self._away = error
            return PutBack(row)
        if isinstance(error, NOT_THIS_JOB):
            await self._set_aside([job.id], BatchStatus.PAUSED, str(error))
            return PutBack(row)
        if isinstance(error, errors.Busy | errors.PoolExhausted):
            assert self._server is not None
            await slots.refused(self._server, job.model, error)
        if isinstance(error, errors.Busy):
            wait = error.retry_after or REFUSED_SECONDS
            return PutBack(row, str(error), wait_s=wait * random.uniform(1, 1.5))  # noqa: S311
        if error.transient:
            wait = backoff(row.attempts + 1)
            return PutBack(row, str(error), error.code, wait_s=wait, counts=True)
        job.failures += 1
        if job.failures >= SAME_FAILURES:
            reason = f"{SAME_FAILURES} rows one after the other failed for good: {error}"
            await self._set_aside([job.id], BatchStatus.FAILED, reason)
        return PutBack(row, str(error), error.code, permanent=True)

    async def _wait_for_model(self, job: Job, in_use: str) -> None:
        """Its jobs rest and say why; those of the model in use may go on."""
        reason = f"Waiting: {in_use} is in use, and the server would have to unload it."
        same = [other for other in self._jobs.values() if other.model == job.model]
        for other in same:
            other.waits_until = time.monotonic() + OTHER_MODEL_SECONDS
        await in_db(ledger.note, self.lease, reason, [other.id for other in same])

    def _row_is_over(self, job: Job, row: Row, charged: float, task: "asyncio.Task[Entry]") -> None:
        """A callback, so that it also sees a task that was cancelled before it began."""
        del self._tasks[task]
        job.running -= 1
        entry = self._entry_of(task, row)
        tokens = charged
        if isinstance(entry, Finished):
            usage = entry.outcome.usage
            tokens = usage.prompt_tokens - usage.cached_tokens + usage.completion_tokens
        self._turns.finish(job.id, charged=charged, tokens=tokens)
        self._writer.record(entry)
        self._something.set()

    @staticmethod
    def _entry_of(task: "asyncio.Task[Entry]", row: Row) -> Entry:
        if task.cancelled():
            return PutBack(row)
        if (error := task.exception()) is None:
            return task.result()
        if not isinstance(error, Exception):  # the process is being ended: not the row's fault
            return PutBack(row)
        log.error("Row %s of batch %s", row.index, row.batch_id, exc_info=error)
        reason = "The workbench made a mistake with this row: see the worker's log."
        return PutBack(row, reason, "internal_error", permanent=True)

    def _was_written(self, entry: Entry) -> None:
        """A row that went back is found again by asking the database."""
        if isinstance(entry, Started):
            return
        self._taken.discard(entry.row.pk)
        if isinstance(entry, PutBack) and entry.row.batch_id in self._jobs:
            self._jobs[entry.row.batch_id].dry = False
        self._something.set()

    # --- Watching ------------------------------------------------------------

    async def _watch(self) -> None:
        """Sees what people do with the jobs, and keeps the lease."""
        renewed = looked = time.monotonic()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                await self._obey()
                if time.monotonic() - renewed >= leases.HEARTBEAT_SECONDS:
                    renewed = time.monotonic()
                    await in_db(leases.renew, self.lease)
            except OperationalError as error:
                log.warning("The database is busy: %s", error)
                continue
            if time.monotonic() - looked >= LOOK_EVERY_SECONDS and self._away is None:
                looked = time.monotonic()
                await self._look()
            for job in self._jobs.values():
                job.dry = False  # a waiting row's time may have come
            self._something.set()

    async def _obey(self) -> None:
        """Pause: nothing new starts. Cancel: open streams are closed, which frees their slots."""
        await in_db(ledger.tend, self.lease)
        # A job may be over while others keep the slots busy.
        over = any(job.dry and not job.ready and not job.running for job in self._jobs.values())
        await self._find_jobs(finish=over)
        elsewhere = {row.batch_id for row in self._tasks.values()} - self._jobs.keys()
        if not elsewhere:
            return
        states = await in_db(ledger.status_of, list(elsewhere))
        for task, row in list(self._tasks.items()):
            gone = row.batch_id in elsewhere and row.batch_id not in states
            if gone or states.get(row.batch_id) == BatchStatus.CANCELLED:
                task.cancel()

    async def _find_jobs(self, *, finish: bool = True) -> bool:
        """Brings the jobs in step with the database. Returns whether any is active."""
        if finish:
            await in_db(ledger.finish_batches, self.lease)
        batches = await in_db(ledger.active_batches, self.lease.server_id)
        for gone in self._jobs.keys() - {batch.pk for batch in batches}:
            self._forget(gone)
        for batch in batches:
            if batch.pk in self._jobs:
                self._jobs[batch.pk].weight = max(1, batch.weight)
                self._jobs[batch.pk].width = batch.width
                continue
            handler = handlers.find(batch.handler)
            if handler is None:
                reason = f"Nothing here knows how to work “{batch.handler}” rows."
                await self._set_aside([batch.pk], BatchStatus.FAILED, reason)
            elif self._server is not None:
                chosen = target(self._server, batch.model)
                self._jobs[batch.pk] = Job(
                    batch.pk,
                    getattr(batch, "name", "") or f"Job {batch.pk}",
                    batch.owner_id,
                    max(1, batch.weight),
                    batch.width,
                    handler,
                    Context(batch.pk, batch.spec, chosen.model, chosen.client),
                    handlers.row_tokens(batch.handler, batch.spec),
                )
        return bool(self._jobs)

    def _forget(self, batch_id: int) -> None:
        job = self._jobs.pop(batch_id)
        self._taken.difference_update(row.pk for row in job.ready)
        job.ready.clear()

    async def _set_aside(self, batch_ids: list[int], status: BatchStatus, reason: str) -> None:
        await in_db(ledger.rest, self.lease, batch_ids, status=status, reason=reason)
        for batch_id in batch_ids:
            if batch_id in self._jobs:
                self._forget(batch_id)

    # --- The server ----------------------------------------------------------

    async def _look(self, *, max_age: timedelta = timedelta(seconds=LOOK_EVERY_SECONDS)) -> None:
        server = await in_db(ledger.server_of, self.lease.server_id)
        if server is None:  # removed: its jobs have none any more
            self._stopping = True
            return
        server = await look_at(server, max_age=max_age)
        self._server = server
        if server.state == State.UNAUTHORIZED:
            await self._find_jobs(finish=False)
            reason = server.facts.get("error", "The server refuses the key.")
            await self._set_aside(list(self._jobs), BatchStatus.PAUSED, reason)
        elif server.state != State.READY:
            self._away = errors.Unreachable(
                server.facts.get("error") or "The model server is not ready."
            )

    async def _wait_for_server(self) -> None:
        """Until the server answers again. The jobs say what they wait for; no row pays for it."""
        error = self._away
        assert error is not None
        log.info("Server %s: waiting. %s", self.lease.server_id, error)
        await in_db(ledger.note, self.lease, f"Waiting for the model server: {error}")
        pause, longest = AWAY_SECONDS
        while not self._is_over() and await self._find_jobs():
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
            pause = min(2 * pause, longest)
            self._away = None
            await self._look(max_age=timedelta(0))
            if self._away is None:
                break
        for job_id in list(self._jobs):  # which model they use is known only now
            self._forget(job_id)
        await in_db(ledger.note, self.lease, "")
        await self._find_jobs(finish=False)

    # --- The end -------------------------------------------------------------

    async def _drain(self) -> None:
        """Lets the rows in flight finish, within reason; nothing new starts."""
        until = time.monotonic() + DRAIN_SECONDS
        while self._tasks and not self._should_stop() and time.monotonic() < until:
            await asyncio.wait(list(self._tasks), timeout=WATCH_SECONDS)

    async def _close_streams(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def backoff(attempt: int) -> float:
    """Seconds before attempt number `attempt` + 1: exponential, with full jitter."""
    longest = min(BACKOFF_LIMIT_SECONDS, BACKOFF_SECONDS * 2 ** (attempt - 1))
    return random.uniform(longest / 2, longest)  # noqa: S311 - jitter


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
