"""Throughput points and the probe of parallel rows, as a pump uses them."""

import pytest
from asgiref.sync import sync_to_async

from apps.batch import services
from apps.batch.handlers import RowOutcome, Verdict
from apps.batch.pump import metrics as pump_metrics
from apps.batch.pump.active_job import ActiveJob
from apps.batch.pump.active_jobs import ActiveJobs
from apps.batch.pump.metrics import PumpMetrics
from apps.batch.scheduler import concurrency_probe
from apps.batch.scheduler.concurrency_probe import ProbeResult
from apps.batch.store.leases import Lease
from apps.batch.store.row_events import PendingRow
from apps.llm.events import Usage
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.services import refresh_server
from tests.batch.conftest import MakeBatch

pytestmark = pytest.mark.django_db(transaction=True)

OUTCOME = RowOutcome(Verdict.ACCEPTED, usage=Usage(5, 0, 10))


@pytest.fixture(autouse=True)
def _short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump_metrics, "MIN_PROBE_ROWS", 4)
    monkeypatch.setattr(concurrency_probe, "STEP_SECONDS", 0.0)


async def active(
    make_batch: MakeBatch, server: Server, lease: Lease, *rows: int
) -> tuple[ActiveJobs, ActiveJob]:
    for count in rows:
        await sync_to_async(make_batch)(count)
    jobs = ActiveJobs(lease)
    return jobs, (await jobs.refresh(server, finish=False))[0]


def run_rows(metrics: PumpMetrics, job: ActiveJob, count: int) -> None:
    rows = [PendingRow(pk, job.id, pk, 0, None) for pk in range(count)]
    for row in rows:
        metrics.row_started(row)
        metrics.row_finished(row, OUTCOME)


async def test_start_probe_limits_the_width_until_it_is_measured(
    make_batch: MakeBatch, server: Server, lease: Lease
) -> None:
    server = await refresh_server(server)
    jobs, job = await active(make_batch, server, lease, 9)
    metrics, widths = PumpMetrics(lease), []
    await metrics.start_probe(job, jobs, server)
    for _ in range(4):
        widths.append(metrics.limit_width(4))
        run_rows(metrics, job, 4)
        await metrics.finish_probe(jobs)
    assert widths == [1, 1, 2, 4] or widths == [1, 2, 4, 4]
    probe = (await in_db(services.throughput_of, job.id)).probe
    assert probe is not None
    assert probe.rates.keys() == {1, 2, 4}


async def test_start_probe_uses_a_recent_one(
    make_batch: MakeBatch, server: Server, lease: Lease
) -> None:
    server = await refresh_server(server)
    jobs, job = await active(make_batch, server, lease, 9)
    result = ProbeResult(job.model, 4, {1: 50.0, 2: 60.0, 4: 30.0}, 2)
    await in_db(pump_metrics.store_probe, lease, job.id, result)
    metrics = PumpMetrics(lease)
    await metrics.start_probe(job, jobs, server)
    assert (job.best_width, metrics.limit_width(4)) == (2, 4)


@pytest.mark.parametrize(("rows", "width"), [((2,), None), ((9,), 2), ((9, 9), None)])
async def test_start_probe_needs_one_long_job_without_a_limit(
    make_batch: MakeBatch, server: Server, lease: Lease, rows: tuple[int, ...], width: int | None
) -> None:
    server = await refresh_server(server)
    jobs, job = await active(make_batch, server, lease, *rows)
    job.width = width
    metrics = PumpMetrics(lease)
    await metrics.start_probe(job, jobs, server)
    assert metrics.limit_width(4) == 4


async def test_finish_probe_drops_one_that_another_job_disturbs(
    make_batch: MakeBatch, server: Server, lease: Lease
) -> None:
    server = await refresh_server(server)
    jobs, job = await active(make_batch, server, lease, 9)
    metrics = PumpMetrics(lease)
    await metrics.start_probe(job, jobs, server)
    await sync_to_async(make_batch)(1)
    await jobs.refresh(server, finish=False)
    await metrics.finish_probe(jobs)
    assert metrics.limit_width(4) == 4
    assert (await in_db(services.throughput_of, job.id)).probe is None


async def test_store_points_adds_rows_and_slots(
    make_batch: MakeBatch, server: Server, lease: Lease
) -> None:
    jobs, job = await active(make_batch, server, lease, 2)
    metrics = PumpMetrics(lease)
    run_rows(metrics, job, 3)
    with job.holding_slot(), job.holding_slot():
        metrics.add_time(2.0, jobs)
    await metrics.store_points()
    await metrics.store_points()  # nothing since
    [point] = (await in_db(services.throughput_of, job.id)).points
    assert (point.rows, point.tokens) == (3, 30)
    assert (point.busy_seconds, point.slot_seconds) == (2.0, 4.0)
