"""Why a job has no slot, as its page shows it."""

import asyncio
import time
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.batch.errors import RowPostponed
from apps.batch.handlers import (
    Handler,
    JobContext,
    RowInput,
    RowOutcome,
    Verdict,
    register_handler,
)
from apps.batch.models import Batch, Item, ItemStatus
from apps.batch.pump.active_job import ActiveJob
from apps.batch.pump.active_jobs import ActiveJobs
from apps.batch.pump.wait_reason import MIN_WAIT_SECONDS, SLOT, TURN, WaitReasons
from apps.batch.services import pause_batch
from apps.batch.store.leases import Lease
from apps.llm import errors
from apps.servers.models import Server
from apps.servers.services import refresh_server
from tests.batch.conftest import MakeBatch, run_until_done, until_stored

pytestmark = pytest.mark.django_db(transaction=True)
LIMIT = "The key may send 60 requests a minute."
POSTPONED: list[int] = []


async def postpone_once(row: RowInput, context: JobContext[Any]) -> RowOutcome:
    if not POSTPONED:
        POSTPONED.append(row.index)
        raise RowPostponed(LIMIT, context.spec["wait_s"])
    return RowOutcome(Verdict.ACCEPTED, raw="Done")


register_handler("tests.postpone_once", Handler(postpone_once))


async def active(make_batch: MakeBatch, server: Server, lease: Lease, jobs: int) -> ActiveJobs:
    """Jobs that have waited for their first slot long enough to show it."""
    for _ in range(jobs):
        await sync_to_async(make_batch)(2)
    found = ActiveJobs(lease)
    for job in await found.refresh(server, finish=False):
        await found.read_rows(job, 2)
        job.last_held_at = time.monotonic() - 2 * MIN_WAIT_SECONDS
    return found


async def shown(job: ActiveJob) -> str:
    return (await Batch.objects.aget(pk=job.id)).reason


async def test_refresh_names_a_free_slot_or_the_turn(
    make_batch: MakeBatch, server: Server, lease: Lease
) -> None:
    server = await refresh_server(server)
    jobs = await active(make_batch, server, lease, 2)
    first, second = jobs
    reasons = WaitReasons(lease, jobs)
    await reasons.refresh(server)
    assert [await shown(first), await shown(second)] == [SLOT, SLOT]
    with first.holding_slot():
        await reasons.refresh(server)
        assert [await shown(first), await shown(second)] == ["", TURN]


async def test_refresh_reports_no_short_wait(
    make_batch: MakeBatch, server: Server, lease: Lease
) -> None:
    jobs = await active(make_batch, server, lease, 1)
    [job] = jobs
    job.last_held_at = time.monotonic() + 60  # just now, however slow this machine is
    await WaitReasons(lease, jobs).refresh(server)
    assert await shown(job) == ""


async def test_refresh_names_the_refusal_of_the_server(
    make_batch: MakeBatch, server: Server, lease: Lease
) -> None:
    jobs = await active(make_batch, server, lease, 1)
    [job] = jobs
    reasons = WaitReasons(lease, jobs)
    reasons.record_refusal(job, errors.Busy("20 requests per minute."))
    await reasons.refresh(server)
    assert await shown(job) == "Slowed down: 20 requests per minute."
    job.refused_until = 0.0
    with job.holding_slot():
        await reasons.refresh(server)
    assert await shown(job) == ""


async def test_refresh_keeps_the_reason_of_post_processing(
    make_batch: MakeBatch, server: Server, lease: Lease
) -> None:
    jobs = await active(make_batch, server, lease, 1)
    [job] = jobs
    reasons = WaitReasons(lease, jobs)
    await reasons.set_reason("Waiting: something else.", [job])
    job.post_processing_blocked = True
    await reasons.refresh(server)
    assert await shown(job) == "Waiting: something else."


async def test_refresh_names_what_a_job_waits_for(
    make_batch: MakeBatch, server: Server, lease: Lease
) -> None:
    jobs = await active(make_batch, server, lease, 1)
    [job] = jobs
    job.wait(600, "Waiting: another model is in use.")
    assert not jobs.with_rows
    await WaitReasons(lease, jobs).refresh(server)
    assert await shown(job) == "Waiting: another model is in use."


async def test_a_postponed_job_waits_as_a_whole_and_says_why(
    make_batch: MakeBatch, server: Server
) -> None:
    POSTPONED.clear()
    batch = await sync_to_async(make_batch)(20, handler="tests.postpone_once", wait_s=600)
    pumping = asyncio.create_task(run_until_done(server))
    await until_stored(lambda: Batch.objects.get(pk=batch.pk).reason == LIMIT)
    finished = batch.items.exclude(finished=None)
    await until_stored(lambda: not batch.items.filter(status=ItemStatus.RUNNING).exists())
    assert await finished.acount() < 20
    await sync_to_async(pause_batch)(batch)
    assert await pumping is False
    assert await finished.acount() < 20


async def test_a_postponed_row_is_sent_later_and_has_lost_no_attempt(
    make_batch: MakeBatch, server: Server
) -> None:
    POSTPONED.clear()
    batch = await sync_to_async(make_batch)(3, handler="tests.postpone_once", wait_s=0.01)
    await run_until_done(server)
    rows = Item.objects.filter(batch=batch)
    assert [(row.status, row.attempts) async for row in rows] == [("accepted", 1)] * 3
    assert (await Batch.objects.aget(pk=batch.pk)).reason == ""
