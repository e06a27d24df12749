"""Sweeps as durable tasks, and what is done with what they found."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.batch.pump.metrics import PumpMetrics
from apps.batch.pump.watcher import ServerCheck
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.services import forget_best_width, hold_slot, record_best_width, refresh_server
from apps.tuning.errors import SweepError
from apps.tuning.models import MOST_RUNS, SweepRun
from apps.tuning.runs import cancellable, services
from apps.tuning.runs import run_sweep as runner
from apps.tuning.runs.services import active_run, cancel_sweep, start_sweep, store_results
from apps.tuning.runs.task_kind import SWEEP
from apps.tuning.sweep.results import SweepResults
from apps.work import services as work
from apps.work.models import Task, TaskState
from tests.conftest import SLOTS
from tests.llama_process import free_port


@pytest.fixture
def known(server: Server) -> Server:
    """The chat server, with its slots known."""
    return asyncio.run(_refresh(server))


async def _refresh(server: Server) -> Server:
    from apps.llm.client import close_clients
    from apps.runtime.redis import close_async_redis

    try:
        return await refresh_server(server)
    finally:
        await close_clients()
        await close_async_redis()


def results(server: Server, best: int = 2) -> SweepResults:
    model = server.model_ids[0]
    return SweepResults(model, SLOTS, 4096, best_width=best, probed={2: 90.0, 4: 80.0})


def finished(server: Server, best: int = 2) -> SweepRun:
    run = SweepRun.objects.create(server=server, minutes=1)
    store_results(run, results(server, best))
    return run


@pytest.mark.django_db(transaction=True)
def test_best_width_is_what_jobs_use_until_it_is_forgotten(known: Server) -> None:
    model = known.model_ids[0]
    assert known.best_width_of(model) is None
    finished(known)
    stored = Server.objects.get()
    assert stored.best_width_of(model) == 2
    stored.facts.slots = 8
    assert stored.best_width_of(model) is None
    forget_best_width(known, model)
    assert Server.objects.get().best_width_of(model) is None


@pytest.mark.django_db(transaction=True)
def test_best_width_stays_when_the_server_is_asked_again(known: Server) -> None:
    finished(known)
    known.refresh_from_db()
    known.checked_at = None
    known.save()
    assert asyncio.run(_refresh(known)).best_width_of(known.model_ids[0]) == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("best", "limit"), [(2, 2), (SLOTS, None)])
def test_pump_starts_a_job_with_the_best_width(known: Server, best: int, limit: int | None) -> None:
    finished(known, best)
    job = type("Job", (), {"width": None, "model": known.model_ids[0], "best_width": 7})()
    asyncio.run(PumpMetrics(None).start_probe(job, [job], Server.objects.get()))  # type: ignore[arg-type]
    assert job.best_width == limit


@pytest.mark.django_db(transaction=True)
def test_one_sweep_of_a_server_at_a_time(known: Server, carol: User) -> None:
    run = start_sweep(known, "", 1, carol)
    assert active_run(known) == run
    with pytest.raises(SweepError, match="“Chat” is being measured already"):
        start_sweep(known, "", 1, carol)
    cancel_sweep(known)
    assert active_run(known) is None
    run.refresh_from_db()
    assert run.error == services.CANCELLED
    assert start_sweep(known, "", 1, carol).pk != run.pk


@pytest.mark.django_db(transaction=True)
def test_only_the_latest_runs_are_kept(known: Server) -> None:
    for _ in range(MOST_RUNS + 2):
        last = finished(known)
    assert SweepRun.objects.count() == MOST_RUNS
    assert SweepRun.objects.first() == last
    assert last.server.sweeps.get(pk=last.pk).results == results(known)


@pytest.mark.django_db(transaction=True)
def test_run_whose_task_is_gone_is_ended(known: Server) -> None:
    run = SweepRun.objects.create(server=known, minutes=1)
    services.end_lost_runs(known)
    run.refresh_from_db()
    assert run.ended is not None
    assert run.error == services.LOST


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("nobody_stays", "idle_slots")
def test_worker_measures_until_the_minutes_are_over(known: Server, carol: User) -> None:
    run = start_sweep(known, "", 0.03, carol)
    work.run_subject(SWEEP, known.pk)
    run.refresh_from_db()
    assert run.error == ""
    assert run.ended is not None
    assert run.results is not None
    assert run.results.slots == SLOTS
    assert "Time was up" in run.results.notes[-1]
    assert Task.objects.get(kind=SWEEP).state == TaskState.DONE


@pytest.mark.django_db(transaction=True)
def test_worker_ends_a_run_with_the_reason_why_it_cannot_measure(carol: User) -> None:
    away = Server.objects.create(name="Away", base_url=f"http://127.0.0.1:{free_port()}/v1")
    run = start_sweep(away, "", 1, carol)
    work.run_subject(SWEEP, away.pk)
    run.refresh_from_db()
    assert run.error.startswith("“Away” is not ready.")
    assert run.results is None
    assert Task.objects.get(kind=SWEEP).state == TaskState.FAILED


@pytest.mark.django_db(transaction=True)
def test_worker_stops_when_the_run_is_cancelled(
    known: Server, carol: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancellable, "CHECK_SECONDS", 0.02)
    run = start_sweep(known, "", 5, carol)
    stored = runner.store_progress

    def cancel_too(pk: int, progress: object) -> None:
        stored(pk, progress)  # type: ignore[arg-type]
        cancel_sweep(known)

    monkeypatch.setattr(runner, "store_progress", cancel_too)
    work.run_subject(SWEEP, known.pk)
    run.refresh_from_db()
    assert run.error == services.CANCELLED
    assert Task.objects.get(kind=SWEEP).state == TaskState.CANCELLED


@pytest.mark.django_db(transaction=True)
async def test_pump_follows_people_with_the_width_measured_for_them(
    server: Server, loop_closed: None
) -> None:
    known = await refresh_server(server)
    model = known.model_ids[0]
    await in_db(record_best_width, known, model, 3, 2)
    job = SimpleNamespace(model=model, mixed_width=7)
    pump: Any = SimpleNamespace(
        server=known,
        jobs=[job],
        lease=SimpleNamespace(server_id=known.pk),
        widths=SimpleNamespace(save=_save_nothing),
    )
    check = ServerCheck(pump)
    check._address = (known.base_url, known.encrypted_key)  # noqa: SLF001
    await check.follow_changes()
    assert job.mixed_width is None
    async with hold_slot(known, lane=Lane.INTERACTIVE, person=1):
        await check.follow_changes()
        assert job.mixed_width == 2
    await check.follow_changes()
    assert job.mixed_width is None


async def _save_nothing(server: Server) -> None:
    pass
