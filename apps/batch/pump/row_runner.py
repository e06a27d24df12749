"""One row: permit, handler, and the meaning of its failure for row, job and server."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import cast

from django.db import OperationalError
from redis.exceptions import RedisError

from apps.batch.errors import RowPostponed
from apps.batch.handlers import RowInput, RowOutcome
from apps.batch.models import BatchStatus
from apps.batch.pump import retry
from apps.batch.pump.active_job import ActiveJob
from apps.batch.pump.state import PumpState
from apps.batch.store.row_events import Finished, PendingRow, Returned, RowEvent, Started
from apps.llm import errors
from apps.llm.permits import ModelInUse, Permit, SlotTaken
from apps.llm.resume import ResumableCompletion
from apps.servers.models import Server, State
from apps.servers.services import hold_slot, refresh_server

log = logging.getLogger(__name__)

# The jobs of a model wait this long before they ask again whether another model is in use.
OTHER_MODEL_SECONDS = 2.0
STOPPED = "The worker was stopped while this row was running. The row starts again."
# A postponed job asks again after this long: what holds it back may be changed meanwhile.
MAX_POSTPONED_SECONDS = 60.0
# After this many permanent failures in succession the job is at fault, not its rows.
MAX_CONSECUTIVE_FAILURES = 20


class RowRunner:
    def __init__(self, state: PumpState) -> None:
        self._state = state

    async def run(self, job: ActiveJob, row: PendingRow) -> RowEvent:
        """Send a row to the server and return what became of it."""
        try:
            return await self._send(job, row)
        except ModelInUse as error:
            self._wait_for_model(job, error.model)
            return Returned(row)
        except RowPostponed as error:
            job.wait(min(error.wait_s, MAX_POSTPONED_SECONDS), str(error))
            return Returned(row)
        except errors.LLMError as error:
            return await self._classify_safely(job, row, error)
        except RedisError as error:
            self._state.blocked_by = f"Waiting for Redis: {error}."
            return Returned(row)
        except OperationalError as error:  # the database is busy, which is not the row's fault
            log.warning("The database is busy: %s", error)
            return Returned(row, wait_s=retry.backoff_seconds(1))

    async def _send(self, job: ActiveJob, row: PendingRow) -> RowEvent:
        state, server = self._state, self._state.server
        assert server is not None
        task = cast("asyncio.Task[RowEvent]", asyncio.current_task())
        draft = job.drafts.pop(row.pk, None) or ResumableCompletion(
            can_continue=server.continues_messages
        )
        request = RowInput(row.index, row.attempts + 1, row.input, draft.restart())
        try:
            async with self._slot(job, server, row) as held:
                state.without_slot.discard(task)
                state.writer.record(Started(row, job.model))
                state.metrics.row_started(row)
                with job.holding_slot():
                    outcome = await self._run_row(job, server, row, request)
                job.consecutive_failures = 0
                state.answers += 1
                if state.breaker.in_trouble:
                    state.breaker.record_success()
                state.metrics.row_finished(row, outcome)
                event = Finished(row, outcome, job.take_active_seconds())
                # Before the slot is given back, which may wait for Redis.
                state.writer.record(event)
                if held is not None:
                    held.record_usage(outcome.usage)
        except SlotTaken:
            job.drafts[row.pk] = draft
            return Returned(row, keeps_claim=True)
        return event

    def _slot(
        self, job: ActiveJob, server: Server, row: PendingRow
    ) -> AbstractAsyncContextManager[Permit | None]:
        if job.asks_for_slots:
            return nullcontext()
        return hold_slot(
            server,
            lane=job.lane,
            model=job.model,
            tokens=job.row_tokens,
            label=job.name,
            owner=job.owner,
            loses_work=not server.continues_messages or job.loses_work(row.input),
            latest=lambda: self._state.server or server,
        )

    async def _run_row(
        self, job: ActiveJob, server: Server, row: PendingRow, request: RowInput
    ) -> RowOutcome:
        if job.asks_for_slots:
            return await job.run_row(request, job.context)
        with self._measuring(server, job.model, row):
            outcome = await job.run_row(request, job.context)
        self._state.widths.finished(server, job.model, row.pk, outcome.written)
        return outcome

    @contextmanager
    def _measuring(self, server: Server, model: str, row: PendingRow) -> Iterator[None]:
        """Measure the width of the server on this row, which may end without an answer.

        Raises:
            BackendGone: a proxy timed out, and no other row had an answer meanwhile either.
        """
        state, widths = self._state, self._state.widths
        widths.started(server, model, row.pk)
        answers = state.answers
        try:
            yield
        except BaseException as error:
            widths.dropped(server, model, row.pk, refused=isinstance(error, errors.Busy))
            if isinstance(error, errors.ProxyTimeout) and state.answers == answers:
                raise errors.BackendGone(str(error)) from error
            raise

    async def _classify_safely(
        self, job: ActiveJob, row: PendingRow, error: errors.LLMError
    ) -> Returned:
        """Classify a failure; a hiccup of Redis or the database is not the row's fault."""
        try:
            return await self._classify_failure(job, row, error)
        except (RedisError, OperationalError) as hiccup:
            log.warning("An error of the model server could not be noted: %s", hiccup)
            return Returned(row, str(error), wait_s=retry.backoff_seconds(1))

    async def _classify_failure(
        self, job: ActiveJob, row: PendingRow, error: errors.LLMError
    ) -> Returned:
        """Apply a failure to the server, to the job, or to this row alone."""
        state = self._state
        if isinstance(error, retry.NOT_THE_ROW):
            state.blocked_by = waiting_for_server(error)
        elif isinstance(error, errors.CutOff) and await self._is_server_away():
            state.blocked_by = waiting_for_server(error)
            return Returned(row)
        elif isinstance(error, retry.SERVER_OR_ROW):
            if state.breaker.record_failure(row.pk):
                number = len(state.breaker.failed)
                state.blocked_by = waiting_for_server(f"{number} rows in a row failed. {error}")
                return Returned(row, str(error))
        elif isinstance(error, retry.NOT_THIS_JOB):
            state.cancel_waiting_rows({job.id})
            await state.jobs.leave_or_deactivate(job, BatchStatus.PAUSED, str(error))
        elif isinstance(error, errors.Busy | errors.PoolExhausted):
            state.wait_reasons.record_refusal(job, error)
        elif not error.transient:
            job.consecutive_failures += 1
            if job.consecutive_failures >= MAX_CONSECUTIVE_FAILURES:
                reason = f"{MAX_CONSECUTIVE_FAILURES} consecutive rows failed permanently: {error}"
                await state.jobs.leave_or_deactivate(job, BatchStatus.FAILED, reason)
        return retry.returned(row, error)

    async def _is_server_away(self) -> bool:
        """True if the server ended in the middle of an answer, which is not the row's fault."""
        assert self._state.server is not None
        server = await refresh_server(self._state.server, max_age=timedelta(0))
        return server.state == State.UNREACHABLE

    def _wait_for_model(self, job: ActiveJob, in_use: str) -> None:
        """Let the jobs of this model wait with a reason; those of the model in use continue."""
        reason = f"Waiting: {in_use} is in use, and the server would have to unload it."
        for other in self._state.jobs_of_model(job.model):
            other.wait(OTHER_MODEL_SECONDS, reason)


def event_of(task: "asyncio.Task[RowEvent]", row: PendingRow, *, stopping: bool) -> RowEvent:
    """Return the event of a finished task, also of one that was cancelled or crashed."""
    if task.cancelled():
        return Returned(row, STOPPED if stopping else "")
    if (error := task.exception()) is None:
        return task.result()
    if not isinstance(error, Exception):  # the process is ending: not the row's fault
        return Returned(row)
    log.error("Row %s of batch %s", row.index, row.batch_id, exc_info=error)
    reason = "Workbench error in this row. Details are in the worker log."
    return Returned(row, reason, "internal_error", permanent=True)


def waiting_for_server(why: object) -> str:
    return f"Waiting for the model server: {why}"
