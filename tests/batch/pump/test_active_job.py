"""Limits of a job in the memory of its pump."""

from contextlib import suppress
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from apps.batch.handlers import Handler, JobContext, register_handler
from apps.batch.models import Batch
from apps.batch.pump.active_job import ActiveJob, build_job
from apps.batch.pump.active_jobs import ActiveJobs
from apps.batch.services import update_spec
from apps.batch.store import leases
from apps.llm.client import Client
from apps.runtime.async_db import in_db
from apps.servers.models import Kind, Server
from tests.batch.conftest import MakeBatch, echo


def job_of(**limits: Any) -> ActiveJob:
    context: JobContext[dict[str, Any]] = JobContext(1, {}, "m", cast(Client, None))
    job = ActiveJob(1, "Job", 1, 1, None, echo, context, row_tokens=0, rows=9)
    job.update_limits(Batch(**limits), 1)
    return job


async def test_build_job_takes_what_the_batch_says() -> None:
    server = Server(kind=Kind.LLAMA_SERVER, base_url="http://127.0.0.1:9/v1", state="ready")
    batch = Batch(pk=1, owner_id=1, spec={}, model="m", total=9, weight=0, width=3)
    job = build_job(batch, "hash", Handler(echo), server)
    assert (job.name, job.model, job.rows, job.weight, job.width) == ("Job 1", "m", 9, 1, 3)
    assert (job.row_tokens, job.needs_post_processing) == (0, False)


def tokens_of_spec(spec: dict[str, Any], thinking: object) -> int:
    return int(spec["max_tokens"])


def has_grammar(row: object, spec: dict[str, Any]) -> bool:
    return bool(spec.get("grammar"))


register_handler("tests.measured", Handler(echo, row_tokens=tokens_of_spec, loses_work=has_grammar))


@pytest.mark.django_db(transaction=True)
async def test_a_spec_that_is_edited_holds_for_the_rows_that_start_from_then_on(
    make_batch: MakeBatch, server: Server
) -> None:
    """Also for what their permits say: rows that share a KV cache must fit into it together."""
    batch = await in_db(lambda: make_batch(handler="tests.measured", max_tokens=8))
    lease = await in_db(leases.acquire, server.pk)
    assert lease is not None
    jobs = ActiveJobs(lease)
    (job,) = await jobs.refresh(server, finish=False)
    assert (job.row_tokens, job.loses_work(None)) == (8, False)

    edited = {"max_tokens": 90, "grammar": "root"}
    await in_db(lambda: update_spec(batch, lambda spec: {**spec, **edited}))
    assert await jobs.refresh(server, finish=False) == []
    assert jobs.find(batch.pk) is job
    assert (job.row_tokens, job.loses_work(None)) == (90, True)
    assert job.context.spec["max_tokens"] == 90


@pytest.mark.parametrize(
    ("width", "best", "running", "full"),
    [
        (None, None, 99, False),
        (2, None, 1, False),
        (2, None, 2, True),
        (None, 2, 2, True),
        (4, 2, 3, False),  # the limit of the owner goes before the measured one
    ],
)
def test_is_full_by_rows_in_flight(
    width: int | None, best: int | None, running: int, full: bool
) -> None:
    job = job_of(width=width)
    job.best_width, job.running = best, running
    assert job.is_full is full


@pytest.mark.parametrize(
    ("width", "mixed", "running", "full"),
    [(None, 1, 1, True), (None, 1, 0, False), (None, None, 1, False), (4, 1, 3, False)],
)
def test_is_full_sooner_while_people_use_the_server(
    width: int | None, mixed: int | None, running: int, full: bool
) -> None:
    job = job_of(width=width)
    job.best_width, job.mixed_width, job.running = 2, mixed, running
    assert job.is_full is full


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 3))
def test_is_full_keeps_expected_tokens_under_the_daily_limit(
    spent: int, charged: int, running: int
) -> None:
    job = job_of(daily_tokens=100)
    job.spent_today, job.charged, job.running = spent, float(charged), running
    if spent >= 100:
        assert job.is_full
    elif running == 0:
        assert not job.is_full  # or a row dearer than the rest of the day would block it
    else:
        assert job.is_full is (spent + charged >= 100)


def test_update_limits_counts_unwritten_rows_until_the_next_day() -> None:
    today = timezone.localdate()
    batch = Batch(daily_tokens=100, day=today, completion_tokens=30)
    job = job_of(daily_tokens=100)
    job.update_limits(batch, 1)
    job.spent_today += 20  # a row that is not written yet
    job.update_limits(batch, 1)
    assert job.spent_today == 50
    batch.completion_tokens = 60
    job.update_limits(batch, 1)
    assert job.spent_today == 60
    batch.day, batch.tokens_before_day = today + timedelta(days=1), 60
    job.update_limits(batch, 1)
    assert (job.spent_today, job.day) == (0, batch.day)


def test_holding_slot_counts_also_after_an_error() -> None:
    job = job_of()
    with suppress(ZeroDivisionError), job.holding_slot(), job.holding_slot():
        assert job.slots_held == 2
        raise ZeroDivisionError
    assert job.slots_held == 0


def test_take_active_seconds_counts_no_time_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_of()
    clock = iter([10.0, 12.5, 12.5])
    times = SimpleNamespace(monotonic=lambda: next(clock))
    monkeypatch.setattr("apps.batch.pump.active_job.time", times)
    job.active_since = 4.0
    assert [job.take_active_seconds() for _ in range(3)] == [6.0, 2.5, 0.0]
