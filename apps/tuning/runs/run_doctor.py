"""Runs an examination as a worker."""

import asyncio
from functools import partial

from apps.runtime.async_db import in_db
from apps.tuning.doctor.services import examine_server
from apps.tuning.models import DoctorRun
from apps.tuning.runs.doctor_services import end_run
from apps.tuning.runs.run_stored import run_stored
from apps.work.services import HeldTask


def run_doctor(held: HeldTask) -> None:
    """Examine a server: the handler of `DOCTOR`. A second worker begins from the start."""
    asyncio.run(_run(held))


async def _run(held: HeldTask) -> None:
    pk = held.task.options["run"]
    run = await in_db(DoctorRun.objects.select_related("server").filter(pk=pk).first)
    if run is None:
        return
    await run_stored(
        held,
        lambda: examine_server(run.server),
        store=partial(end_run, pk, ""),
        end=partial(end_run, pk),
    )
