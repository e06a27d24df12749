"""One pump per model server: it keeps every slot busy with the rows of all running jobs.

A dispatcher starts a row the moment a slot is free; beside it a reader has the next rows ready and
a writer commits what became of the others, so that no slot waits for the database; a watcher sees
pause, resume and cancel. Whoever takes the lease later finds in the rows all there is to know.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import cast

from django.db import OperationalError
from redis.exceptions import RedisError

from apps.batch.handlers import Work
from apps.batch.models import BatchStatus
from apps.batch.pump import retry
from apps.batch.pump.circuit_breaker import Breaker
from apps.batch.pump.fair_queue import Turns
from apps.batch.pump.jobs import Job, Jobs
from apps.batch.pump.metrics import Measures
from apps.batch.pump.post_processing import Settling
from apps.batch.pump.wait_reason import Reasons
from apps.batch.pump.writer import Writer
from apps.batch.store import disk_space, leases, store
from apps.batch.store.leases import Lease, LeaseLost
from apps.batch.store.store import Entry, Finished, PutBack, Row, Started
from apps.llm import errors
from apps.llm.permits import Lane, ModelInUse, SlotTaken
from apps.llm.stream.resume import ResumableCompletion
from apps.runtime.async_db import in_db
from apps.servers.models import Server, State
from apps.servers.services import hold_slot, look_at

log = logging.getLogger(__name__)

Stop = Callable[[], bool]

WATCH_SECONDS = 1.0
LOOK_EVERY_SECONDS = 30.0
READ_AHEAD_ROWS = 64
# So long the jobs of a model wait before they ask again whether another one is still in use.
OTHER_MODEL_SECONDS = 2.0
STOPPED = "The worker was stopped while this row was running. The row starts again."
# So many rows in a row that can never succeed: it is the job, not the row.
SAME_FAILURES = 20


async def run(
    server_id: int, *, seconds: float = math.inf, should_stop: Stop = lambda: False
) -> bool:
    """Works off a server's jobs until there are none, however long a row takes.

    Does nothing while another pump holds the server's lease. Returns whether there is more to do,
    because a stop was asked for or so many seconds have passed.
    """
    deadline = time.monotonic() + seconds

    def is_over() -> bool:
        return should_stop() or time.monotonic() >= deadline

    while await in_db(store.has_work, server_id) or await in_db(store.has_orphans, server_id):
        if is_over():
            return True
        lease = await in_db(leases.take, server_id)
        if lease is None:
            return False
        replaced = False
        try:
            await Pump(lease, should_stop=is_over).work()
        except* LeaseLost as lost:
            log.warning("%s", lost.exceptions[0])
            replaced = True
        finally:
            await in_db(leases.give_back, lease)
        if replaced:
            return False
        # Looks again after giving the lease back: a job that was queued just before found it held.
    return False


class Pump:
    def __init__(self, lease: Lease, *, should_stop: Stop) -> None:
        self.lease = lease
        self._should_stop = should_stop
        self._stopping = False
        self._server: Server | None = None
        self._jobs = Jobs(lease)
        self._turns = Turns()
        self._tasks: dict[asyncio.Task[Entry], Row] = {}
        self._without_slot: set[asyncio.Task[Entry]] = set()
        """Of these, the ones that wait for a permit."""
        self._writer = Writer(lease, on_written=self._was_written)
        self._something = asyncio.Event()  # for the dispatcher
        self._settling = Settling(lease, self._jobs, self._something)
        self._to_read = asyncio.Event()
        self._is_reading = False
        self._waits_for = ""
        """Why no row starts, as a sentence; empty where nothing is in the way."""
        self._said = ""
        """The same as it stands at the jobs, until it is sure that rows go on."""
        self._measures = Measures(lease)
        self._reasons = Reasons(lease, self._jobs)
        self._breaker = Breaker()
        self._model = ""
        """Whose rows started last: where only some models fit at once, its are the next ones."""

    async def work(self) -> None:
        """Until no job is active or a stop was asked for.

        Raises:
            ExceptionGroup[LeaseLost]: another pump has taken over; all requests were closed.
        """
        lost = await in_db(store.recover, self.lease)
        if lost:
            log.info("%s rows of an earlier pump start again.", lost)
        async with asyncio.TaskGroup() as group:
            work = (self._writer.run(), self._read(), self._watch(group))
            helpers = [group.create_task(part) for part in work]
            try:
                await self._dispatch()
            finally:
                await self._close_streams()
                await self._writer.finish()  # also when everything is being cancelled around us
            await self._measures.keep()
            await self._measures.settle_trial(self._jobs)  # one that ended with the job
            for helper in helpers:
                helper.cancel()
            self._settling.stop()

    # --- Dispatching ---------------------------------------------------------

    async def _dispatch(self) -> None:
        self._waits_for = await in_db(disk_space.too_little_room)
        await self._look(max_age=timedelta(0))
        while not self._is_over():
            self._something.clear()
            if self._waits_for or self._writer.is_out_of_room:
                self._waits_for = self._waits_for or disk_space.FULL
                await self._wait_until_it_is_there()
                continue
            self._start_rows()
            self._read_ahead()
            if not self._is_at_work() and not await self._find_jobs():
                return
            self._read_ahead()
            await _wait(self._something, WATCH_SECONDS / 2)

    def _is_at_work(self) -> bool:
        """Whether anything is under way that will make the dispatcher look again."""
        rows_wait = any(job.ready for job in self._jobs)
        return rows_wait or bool(self._tasks) or self._writer.is_behind or self._is_reading

    def _is_over(self) -> bool:
        self._stopping = self._stopping or self._should_stop()
        return self._stopping

    def _start_rows(self) -> None:
        while ready := {job.id: job for job in self._whose_turn_it_is()}:
            job = ready[self._turns.pick({job.id: job.weight for job in ready.values()})]
            if len(self._tasks) >= self._width(job.model):
                return
            row = job.ready.popleft()
            self._model = job.model
            if not job.running:
                job.since = time.monotonic()
            job.running += 1
            task = asyncio.create_task(self._ask(job, row))
            self._tasks[task] = row
            self._without_slot.add(task)
            charged = self._turns.start(job.id)
            job.charged += charged
            task.add_done_callback(partial(self._row_is_over, job, row, charged))

    def _whose_turn_it_is(self) -> list[Job]:
        runs = bool(self._tasks)
        return self._jobs.whose_turn_it_is(self._server, self._model, runs=runs)

    def _width(self, model: str) -> int:
        assert self._server is not None
        width = self._measures.at_most(self._server.width(model))
        return width if self._breaker.at_most is None else min(width, self._breaker.at_most)

    # --- Reading ahead -------------------------------------------------------

    def _read_ahead(self) -> None:
        """Has rows fetched before the last ones are gone."""
        if not self._is_reading and self._jobs.low(self._width):
            self._is_reading = True
            self._to_read.set()

    async def _read(self) -> None:
        while True:
            await self._to_read.wait()
            self._to_read.clear()
            for job in self._jobs.low(self._width):
                await self._jobs.read(job, max(READ_AHEAD_ROWS, 4 * self._width(job.model)))
            self._is_reading = False
            self._something.set()

    # --- One row -------------------------------------------------------------

    async def _ask(self, job: Job, row: Row) -> Entry:
        assert self._server is not None
        me = cast("asyncio.Task[Entry]", asyncio.current_task())
        draft = job.drafts.pop(row.pk, None) or ResumableCompletion(
            can_continue=self._server.goes_on
        )
        work = Work(row.index, row.attempts + 1, row.input, draft.restart())
        try:
            async with hold_slot(
                self._server,
                lane=Lane.BATCH,
                model=job.model,
                tokens=job.row_tokens,
                label=job.name,
                owner=job.owner,
            ) as held:
                self._without_slot.discard(me)
                self._writer.record(Started(row, job.model))
                self._measures.begun(row)
                with job.holding_a_slot():
                    outcome = await job.handler(work, job.context)
                job.failures = 0
                self._breaker.row_came_through()
                self._measures.ended(row, outcome)
                entry = Finished(row, outcome, self._worked(job))
                # Before the slot is given back, which a Redis that is away keeps waiting.
                self._writer.record(entry)
                held.record_usage(outcome.usage)
        except SlotTaken:
            job.drafts[row.pk] = draft
            return PutBack(row)
        except ModelInUse as error:
            await self._wait_for_model(job, error.model)
            return PutBack(row)
        except errors.LLMError as error:
            return await self._judge_in_peace(job, row, error)
        except RedisError as error:
            self._waits_for = f"Waiting for Redis: {error}."
            return PutBack(row)
        except OperationalError as error:  # of the database, which is not the row's fault
            log.warning("The database is busy: %s", error)
            return PutBack(row, wait_s=retry.backoff(1))
        return entry

    def _worked(self, job: Job) -> float:
        now = time.monotonic()
        worked, job.since = now - job.since, now
        return worked

    async def _judge_in_peace(self, job: Job, row: Row, error: errors.LLMError) -> PutBack:
        """A hiccup of Redis or the database while an error is noted is not the row's fault."""
        try:
            return await self._judge(job, row, error)
        except (RedisError, OperationalError) as hiccup:
            log.warning("An error of the model server could not be noted: %s", hiccup)
            return PutBack(row, str(error), wait_s=retry.backoff(1))

    async def _judge(self, job: Job, row: Row, error: errors.LLMError) -> PutBack:
        """What an error means: for the server, for the job, or for this row alone."""
        if isinstance(error, retry.NOT_THE_ROW):
            self._waits_for = _waits_for_server(error)
        elif isinstance(error, retry.SERVER_OR_ROW):
            if self._breaker.row_failed(row.pk):
                number = len(self._breaker.failed)
                self._waits_for = _waits_for_server(f"{number} rows in a row failed. {error}")
                return PutBack(row, str(error))
        elif isinstance(error, retry.NOT_THIS_JOB):
            self._call_back_waiting({job.id})
            await self._jobs.set_aside([job.id], BatchStatus.PAUSED, str(error))
        elif isinstance(error, errors.Busy | errors.PoolExhausted):
            self._reasons.refused(job, error)
        elif not error.transient:
            job.failures += 1
            if job.failures >= SAME_FAILURES:
                reason = f"{SAME_FAILURES} consecutive rows failed permanently: {error}"
                await self._jobs.set_aside([job.id], BatchStatus.FAILED, reason)
        return retry.put_back(row, error)

    async def _wait_for_model(self, job: Job, in_use: str) -> None:
        """Its jobs rest and say why; those of the model in use may go on."""
        reason = f"Waiting: {in_use} is in use, and the server would have to unload it."
        same = [other for other in self._jobs if other.model == job.model]
        for other in same:
            other.waits_until = time.monotonic() + OTHER_MODEL_SECONDS
        await self._reasons.say(reason, same)

    def _row_is_over(self, job: Job, row: Row, charged: float, task: "asyncio.Task[Entry]") -> None:
        """A callback, so that it also sees a task that was cancelled before it began."""
        del self._tasks[task]
        self._without_slot.discard(task)
        job.running -= 1
        entry = self._entry_of(task, row)
        tokens = charged
        if isinstance(entry, Finished):
            tokens = entry.outcome.tokens
            job.spent += tokens
        else:  # one that had finished and was cancelled afterwards stays finished
            self._writer.record(entry)
        job.charged -= charged
        self._turns.finish(job.id, charged=charged, tokens=tokens)
        self._something.set()

    def _entry_of(self, task: "asyncio.Task[Entry]", row: Row) -> Entry:
        if task.cancelled():
            return PutBack(row, STOPPED if self._stopping else "")
        if (error := task.exception()) is None:
            return task.result()
        if not isinstance(error, Exception):  # the process is being ended: not the row's fault
            return PutBack(row)
        log.error("Row %s of batch %s", row.index, row.batch_id, exc_info=error)
        reason = "Workbench error in this row. Details are in the worker log."
        return PutBack(row, reason, "internal_error", permanent=True)

    def _was_written(self, entry: Entry) -> None:
        """A row that went back is found again by asking the database."""
        if isinstance(entry, Started):
            return
        self._jobs.written(entry.row, went_back=isinstance(entry, PutBack))
        self._something.set()

    # --- Watching ------------------------------------------------------------

    async def _watch(self, group: asyncio.TaskGroup) -> None:
        """Sees what people do with the jobs, and keeps the lease."""
        looked = ticked = time.monotonic()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            now, before = time.monotonic(), ticked
            ticked = now
            self._measures.tick(now - before, self._jobs)
            try:
                await self._follow_server()
                await self._obey()
                await self._measures.settle_trial(self._jobs)
                await self._measures.keep_now_and_then()
                if self._server is not None and not self._waits_for:
                    await self._reasons.look(self._server)
                self._waits_for = self._waits_for or await in_db(disk_space.too_little_room)
            except OperationalError as error:
                log.warning("The database is busy: %s", error)
                continue
            if time.monotonic() - looked >= LOOK_EVERY_SECONDS and not self._waits_for:
                looked = time.monotonic()
                await self._look()
            for job in self._jobs:
                job.dry = False  # a waiting row's time may have come
            self._breaker.tick()
            if self._said and self._breaker.is_trusted and not self._waits_for:
                await self._say("")
            self._settling.begin(group)
            self._something.set()

    async def _follow_server(self) -> None:
        """A person has changed its address or key: that is asked from now on, with facts of it."""
        known, server = self._server, await in_db(store.server_of, self.lease.server_id)
        if known is None or server is None or _address(server) == _address(known):
            return
        self._server = server
        self._jobs.move(server)
        await self._look(max_age=timedelta(0))

    async def _obey(self) -> None:
        """Pause: nothing new starts. Cancel: open streams are closed, which frees their slots."""
        self._jobs.refilled(await in_db(store.tend, self.lease))
        # A job may be over while others keep the slots busy.
        over = any(job.dry and not job.ready and not job.running for job in self._jobs)
        await self._find_jobs(finish=over)
        elsewhere = {row.batch_id for row in self._tasks.values()} - set(self._jobs.ids)
        if not elsewhere:
            return
        self._call_back_waiting(elsewhere)
        states = await in_db(store.status_of, list(elsewhere))
        for task, row in list(self._tasks.items()):
            gone = row.batch_id in elsewhere and row.batch_id not in states
            if gone or states.get(row.batch_id) == BatchStatus.CANCELLED:
                task.cancel()

    def _call_back_waiting(self, batch_ids: Container[int]) -> None:
        """Rows of these jobs that wait for a slot do not start any more."""
        for task, row in list(self._tasks.items()):
            if row.batch_id in batch_ids and task in self._without_slot:
                task.cancel()

    async def _find_jobs(self, *, finish: bool = True) -> bool:
        """Brings the jobs in step with the database. Returns whether any is active."""
        with self._noting_a_full_disk():
            for job in await self._jobs.look(self._server, finish=finish):
                assert self._server is not None  # without one no job is taken up
                await self._measures.begin_trial(job, self._jobs, self._server)
            return bool(len(self._jobs))
        return True  # as far as is known

    # --- What it takes -------------------------------------------------------

    async def _look(self, *, max_age: timedelta = timedelta(seconds=LOOK_EVERY_SECONDS)) -> None:
        server = await in_db(store.server_of, self.lease.server_id)
        if server is None:  # removed: its jobs have none any more
            self._stopping = True
            return
        with self._noting_a_full_disk():
            server = await look_at(server, max_age=max_age)
        self._server = server
        if server.state == State.UNAUTHORIZED:
            await self._find_jobs(finish=False)
            reason = server.facts.get("error", "The API key was rejected. Update it under Servers.")
            await self._jobs.set_aside(self._jobs.ids, BatchStatus.PAUSED, reason)
        elif server.state != State.READY:
            error = server.facts.get("error") or "The model server is not ready."
            self._waits_for = _waits_for_server(error)

    async def _wait_until_it_is_there(self) -> None:
        """The server, Redis, room on the disk: jobs say what they wait for, and no row pays."""
        log.info("Server %s: %s", self.lease.server_id, self._waits_for)
        while self._waits_for and not self._is_over() and await self._find_jobs():
            await self._say(self._waits_for)
            await self._sleep(self._breaker.pause())
            await self._ask_for_room()
            await self._look(max_age=timedelta(0))
        self._waits_for = ""  # also where no job is left that waits
        self._breaker.begin_slowly()
        for job_id in self._jobs.ids:  # which model they use is known only now
            self._jobs.forget(job_id)
        await self._find_jobs(finish=False)

    async def _sleep(self, seconds: float) -> None:
        """Or until a stop is asked for."""
        until = time.monotonic() + seconds
        # `should_stop` is a question, not an event.
        while (left := until - time.monotonic()) > 0 and not self._is_over():  # noqa: ASYNC110
            await asyncio.sleep(min(left, WATCH_SECONDS / 2))

    async def _say(self, why: str) -> None:
        """At the jobs. A disk that is full may not even take that."""
        with self._noting_a_full_disk():
            await in_db(store.note, self.lease, why)
            self._said = why

    async def _ask_for_room(self) -> None:
        """Whether the database takes rows: where nothing else says so, a small write does."""
        self._waits_for = await in_db(disk_space.too_little_room)
        if self._writer.is_out_of_room:
            self._waits_for = disk_space.FULL
        elif not self._waits_for:
            with self._noting_a_full_disk():
                await in_db(leases.renew, self.lease)

    @contextmanager
    def _noting_a_full_disk(self) -> Iterator[None]:
        """What fails because of it is what no row starts for, and is tried again."""
        try:
            yield
        except OperationalError as error:
            if not disk_space.is_full(error):
                raise
            self._waits_for = disk_space.FULL

    # --- The end -------------------------------------------------------------

    async def _close_streams(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _address(server: Server) -> tuple[str, bytes | str | None]:
    return server.base_url, server.encrypted_key


def _waits_for_server(why: object) -> str:
    return f"Waiting for the model server: {why}"


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
