"""Runs a sweep as a worker: its progress is written, its cancelling is heard."""

import asyncio
from functools import partial

from apps.runtime.async_db import in_db
from apps.tuning.models import SweepRun
from apps.tuning.runs.run_stored import run_stored
from apps.tuning.runs.services import end_run, store_results
from apps.tuning.sweep.results import SweepResults
from apps.tuning.sweep.services import Progress, choose_model, sweep_server
from apps.work.services import HeldTask


def run_sweep(held: HeldTask) -> None:
    """Measure a server: the handler of `SWEEP`. A second worker begins from the start."""
    asyncio.run(_run(held))


async def _run(held: HeldTask) -> None:
    pk = held.task.options["run"]
    run = await in_db(SweepRun.objects.select_related("server").filter(pk=pk).first)
    if run is None:
        return
    await run_stored(
        held, lambda: _sweep(run), store=partial(store_results, run), end=partial(end_run, pk)
    )


async def _sweep(run: SweepRun) -> SweepResults:
    async def report(progress: Progress) -> None:
        await in_db(store_progress, run.pk, progress)

    target = await choose_model(run.server, run.model)
    return await sweep_server(target, run.minutes, report, owner=run.owner_id)


def store_progress(pk: int, progress: Progress) -> None:
    """Write how far a run is, with its results so far."""
    SweepRun.objects.filter(pk=pk).update(
        done=progress.done,
        planned=progress.planned,
        doing=progress.doing[:300],
        stored_results=progress.results.to_json(),
    )
