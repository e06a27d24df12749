"""Runs a sweep as a worker: its progress is written, its cancelling is heard."""

import asyncio

from apps.llm.client import close_clients
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.tuning.errors import SweepError
from apps.tuning.models import SweepRun
from apps.tuning.runs.services import CANCELLED, LOST, end_run, store_results
from apps.tuning.sweep.results import SweepResults
from apps.tuning.sweep.services import Progress, choose_model, sweep_server
from apps.work.errors import TaskCancelled
from apps.work.models import TaskState
from apps.work.services import HeldTask

CHECK_SECONDS = 1.0


def run_sweep(held: HeldTask) -> None:
    """Measure a server: the handler of `SWEEP`. A second worker begins from the start."""
    asyncio.run(_run(held))


async def _run(held: HeldTask) -> None:
    pk = held.task.options["run"]
    run = await in_db(SweepRun.objects.select_related("server").filter(pk=pk).first)
    if run is None:
        return
    try:
        if held.is_worn_out:
            raise SweepError(LOST)
        await in_db(store_results, run, await _unless_cancelled(held, run))
    except SweepError as error:
        await in_db(end_run, pk, str(error))
        await in_db(held.end, TaskState.FAILED, str(error))
    except TaskCancelled:
        await in_db(end_run, pk, CANCELLED)
        raise
    finally:
        await close_clients()
        await close_async_redis()


async def _unless_cancelled(held: HeldTask, run: SweepRun) -> SweepResults:
    """Return the results.

    Raises:
        SweepError, TaskCancelled, LeaseLost: the requests in flight are closed then.
    """
    sweep = asyncio.create_task(_sweep(run))
    watch = asyncio.create_task(_watch(held))
    try:
        done, _ = await asyncio.wait({sweep, watch}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sweep, watch):
            task.cancel()
        await asyncio.gather(sweep, watch, return_exceptions=True)
    if watch in done:
        watch.result()
    return sweep.result()


async def _sweep(run: SweepRun) -> SweepResults:
    async def report(progress: Progress) -> None:
        await in_db(store_progress, run.pk, progress)

    target = await choose_model(run.server, run.model)
    return await sweep_server(target, run.minutes, report, owner=run.owner_id)


async def _watch(held: HeldTask) -> None:
    """Return never; raise once the task is cancelled or lost."""
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        await in_db(held.check)


def store_progress(pk: int, progress: Progress) -> None:
    """Write how far a run is, with its results so far."""
    SweepRun.objects.filter(pk=pk).update(
        done=progress.done,
        planned=progress.planned,
        doing=progress.doing[:300],
        stored_results=progress.results.to_json(),
    )
