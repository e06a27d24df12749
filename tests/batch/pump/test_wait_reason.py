"""Why a job has no slot, as its page shows it."""

import time

import pytest
from asgiref.sync import sync_to_async

from apps.batch.models import Batch
from apps.batch.pump.active_job import ActiveJob
from apps.batch.pump.active_jobs import ActiveJobs
from apps.batch.pump.wait_reason import MIN_WAIT_SECONDS, SLOT, TURN, WaitReasons
from apps.batch.store.leases import Lease
from apps.llm import errors
from apps.servers.models import Server
from apps.servers.services import refresh_server
from tests.batch.conftest import MakeBatch

pytestmark = pytest.mark.django_db(transaction=True)


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


@pytest.mark.parametrize("blocked", [True, False], ids=["post-processing", "another model"])
async def test_refresh_keeps_a_reason_set_elsewhere(
    make_batch: MakeBatch, server: Server, lease: Lease, blocked: bool
) -> None:
    jobs = await active(make_batch, server, lease, 1)
    [job] = jobs
    reasons = WaitReasons(lease, jobs)
    await reasons.set_reason("Waiting: something else.", [job])
    job.post_processing_blocked = blocked
    job.model_wait_until = 0.0 if blocked else time.monotonic() + 600
    await reasons.refresh(server)
    assert await shown(job) == "Waiting: something else."
