"""The pump on a real llama.cpp and a real Redis."""

import asyncio
import sqlite3
import threading
from contextlib import closing
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection, transaction
from django.db.backends.signals import connection_created
from django.utils import timezone
from psycopg.errors import DiskFull

from apps.batch import services
from apps.batch.handlers import (
    Handler,
    JobContext,
    RowInput,
    RowOutcome,
    Verdict,
    register_handler,
)
from apps.batch.models import Batch, BatchStatus, Item, ItemStatus, PumpLease, ThroughputHistory
from apps.batch.pump import metrics as pump_metrics
from apps.batch.pump import pump, retry, row_runner
from apps.batch.pump import state as pump_state
from apps.batch.pump.active_jobs import ActiveJobs
from apps.batch.pump.pump import run_pump
from apps.batch.scheduler import concurrency_probe
from apps.batch.scheduler.fair_queue import FairQueue
from apps.batch.store import claims, disk_space, job_writes, leases, row_events, row_writes
from apps.llm import errors
from apps.llm.permits import permits_in_flight
from apps.llm.resume import ResumableCompletion
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.probing.discovery import fetch_slots
from apps.servers.services import choose_target
from tests.batch.conftest import MakeBatch, run_until_done, until_stored
from tests.llama_process import LlamaProcess
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


async def counts(batch: Batch) -> dict[str, int]:
    return {
        status: count
        for status, count in (await in_db(services.compute_progress, batch)).counts.items()
        if count
    }


def take_over(server: Server) -> leases.Lease | None:
    """Let the lease lapse and acquire it, with no renewal of its holder in between."""
    with transaction.atomic():
        lapsed = timezone.now() - timedelta(seconds=1)
        PumpLease.objects.filter(server=server).update(until=lapsed)
        return leases.acquire(server.pk)


async def fresh(batch: Batch) -> Batch:
    return await Batch.objects.select_related("server").aget(pk=batch.pk)


async def test_every_row_finishes(make_batch: MakeBatch, server: Server) -> None:
    batch = await sync_to_async(make_batch)(40)
    assert await run_until_done(server) is False
    batch = await fresh(batch)
    assert batch.status == BatchStatus.DONE
    assert batch.model == "tiny.gguf" or batch.model
    assert await counts(batch) == {"accepted": 40}
    rows = [item async for item in batch.items.order_by("index")]
    assert [row.index for row in rows] == list(range(40))
    assert all(row.raw and row.prompt and row.attempts == 1 for row in rows)
    assert batch.completion_tokens == sum(row.completion_tokens for row in rows) == 40 * 8
    assert batch.active_seconds > 0


async def test_never_more_in_flight_than_slots(
    make_batch: MakeBatch, server: Server, llama: LlamaProcess
) -> None:
    """By the server's own view, and by ours."""
    batch = await sync_to_async(make_batch)(150, max_tokens=200)
    seen: list[tuple[float, int]] = []

    async def are_all_slots_seen_in_use() -> bool:
        metrics = await in_db(llama.metrics)
        assert metrics["requests_deferred"] == 0
        permits = sum((await permits_in_flight(server.pk)).values())
        seen.append((metrics["requests_processing"], permits))
        return len(seen) >= 30 and tuple(map(max, zip(*seen, strict=True))) >= (4, 4)

    working = asyncio.create_task(run_until_done(server))
    await until(are_all_slots_seen_in_use)
    assert max(max(pair) for pair in seen) == 4
    await in_db(services.cancel_batch, batch)
    await working
    assert await fetch_slots(choose_target(server).client)


async def test_only_one_of_two_pumps_works(make_batch: MakeBatch, server: Server) -> None:
    batch = await sync_to_async(make_batch)(30)
    both = await asyncio.gather(run_until_done(server), run_until_done(server))
    assert both == [False, False]
    assert await counts(batch) == {"accepted": 30}
    assert {item.token async for item in batch.items.all()} == {1}
    assert (await PumpLease.objects.aget(server=server)).token == 1


async def test_a_stale_token_cannot_write(make_batch: MakeBatch, server: Server) -> None:
    batch = await sync_to_async(make_batch)(3)
    old = await in_db(leases.acquire, server.pk)
    assert old is not None
    [row, *_] = await in_db(claims.claim_rows, old, batch.pk, 3)
    await in_db(row_writes.write_events, old, [row_events.Started(row, "m")])
    new = await in_db(take_over, server)
    assert new is not None
    assert new.token == old.token + 1
    outcome = RowOutcome(Verdict.ACCEPTED, output={}, raw="stale")
    for write in (
        lambda: row_writes.write_events(old, [row_events.Finished(row, outcome, 1.0)]),
        lambda: row_writes.write_events(old, [row_events.Returned(row)]),
        lambda: leases.renew(old),
        lambda: job_writes.finish_batches(old, []),
        lambda: job_writes.set_wait_reason(old, "x"),
    ):
        with pytest.raises(leases.LeaseLost):
            await in_db(write)
    assert await in_db(job_writes.recover_rows, new) == 1
    await in_db(leases.release, old)  # of no effect either
    assert await in_db(leases.acquire, server.pk) is None
    assert await counts(batch) == {"pending": 3}


async def test_a_pump_that_lost_its_lease_closes_its_streams_and_ends(
    make_batch: MakeBatch, server: Server, slow_llama: None
) -> None:
    batch = await sync_to_async(make_batch)(12, max_tokens=2000)
    working = asyncio.create_task(run_until_done(server))
    await until_running(batch, 4)
    taken = await in_db(take_over, server)
    assert taken is not None
    pump_ends = asyncio.timeout(150)
    async with pump_ends:  # at its next write or heartbeat
        await Batch.objects.filter(pk=batch.pk).aupdate(status=BatchStatus.CANCELLED)
        assert await working is False
    assert sum((await permits_in_flight(server.pk)).values()) == 0


async def test_pause_and_resume(make_batch: MakeBatch, server: Server, llama: LlamaProcess) -> None:
    # Some seconds of work, and too few rows for a trial of widths, which begins with one slot.
    batch = await sync_to_async(make_batch)(40, max_tokens=400)
    working = asyncio.create_task(run_until_done(server))
    with llama.slowed():
        await until_running(batch, 4)
        await in_db(services.pause_batch, batch)
    assert await working is False  # rows in flight are finished, then there is nothing to do
    found = await counts(batch)
    assert found["pending"] > 0
    assert found.keys() == {"pending", "accepted"}
    await in_db(services.resume_batch, batch)
    await run_until_done(server)
    assert await counts(batch) == {"accepted": 40}


async def test_cancel_closes_the_streams(
    make_batch: MakeBatch, server: Server, llama: LlamaProcess
) -> None:
    before = llama.written()
    batch = await sync_to_async(make_batch)(8, max_tokens=4000)
    with llama.slowed():
        working = asyncio.create_task(run_until_done(server))
        await until_running(batch, 4)
        await in_db(services.cancel_batch, batch)
        await working
    assert not {"running", "accepted"} & (await counts(batch)).keys()
    assert (await fresh(batch)).status == BatchStatus.CANCELLED
    await in_db(llama.wait_until_idle)
    # Far from the 16,000 of four whole rows, however late a busy machine hears of it.
    assert llama.written() < before + 12_000


async def test_a_stop_puts_rows_back_uncounted_and_says_so(
    make_batch: MakeBatch, server: Server, slow_llama: None
) -> None:
    # Too few rows for a probe, which begins with one slot.
    batch = await sync_to_async(make_batch)(150, max_tokens=2000)
    stop = asyncio.Event()
    working = asyncio.create_task(run_pump(server.pk, should_stop=stop.is_set))
    await until_running(batch, 4)
    stop.set()
    assert await working is True  # there is more to do
    assert (await counts(batch)).keys() <= {"pending", "accepted"}
    cut = [item async for item in batch.items.exclude(reason="")]
    assert {(item.reason, item.attempts) for item in cut} == {(row_runner.STOPPED, 0)}
    assert await in_db(leases.acquire, server.pk) is not None  # was given back


async def test_the_server_is_restarted_in_mid_job(
    make_batch: MakeBatch, server: Server, llama: LlamaProcess
) -> None:
    batch = await sync_to_async(make_batch)(40, max_tokens=60)
    working = asyncio.create_task(run_until_done(server))
    with llama.slowed():
        await until_running(batch, 4)
        await in_db(llama.kill)
    await until_it_waits(batch, "Waiting for the model server")
    await in_db(llama.start)
    await working
    assert await counts(batch) == {"accepted": 40}
    batch = await fresh(batch)
    assert (batch.status, batch.reason) == (BatchStatus.DONE, "")
    # Only the rows that were cut off had a second attempt: waiting costs none.
    assert await batch.items.filter(attempts__gt=1).acount() <= 4


async def test_cancelled_while_its_server_is_away(make_batch: MakeBatch, server: Server) -> None:
    server.base_url = "http://127.0.0.1:9/v1"  # nobody answers there
    await server.asave()
    batch = await sync_to_async(make_batch)(4)
    working = asyncio.create_task(run_until_done(server))
    await until_it_waits(batch, "Waiting for the model server")
    await in_db(services.cancel_batch, batch)
    async with asyncio.timeout(150):
        assert await working is False


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the database is not on this disk")
async def test_no_row_starts_on_a_full_disk(
    make_batch: MakeBatch, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_space, "LEAST_BYTES", 2**60)
    batch = await sync_to_async(make_batch)(4)
    working = asyncio.create_task(run_until_done(server))
    await until_it_waits(batch, "Waiting: only")
    assert await counts(batch) == {"pending": 4}
    monkeypatch.setattr(disk_space, "LEAST_BYTES", 1)
    await working
    assert await counts(batch) == {"accepted": 4}
    assert (await fresh(batch)).reason == ""


async def until_it_waits(batch: Batch, sentence: str) -> None:
    await until_stored(lambda: Batch.objects.get(pk=batch.pk).reason.startswith(sentence))


async def test_a_wrong_key_pauses_the_job(make_batch: MakeBatch, server: Server) -> None:
    batch = await sync_to_async(make_batch)(5)
    server.set_key("wrong")
    await server.asave()
    await run_until_done(server)
    batch = await fresh(batch)
    assert batch.status == BatchStatus.PAUSED
    assert "key" in batch.reason
    assert await counts(batch) == {"pending": 5}


async def failing(row: RowInput, context: JobContext[Any]) -> RowOutcome:
    """Fails as the batch's spec says: `transient` so many times, else for good."""
    if row.attempt <= context.spec.get("times", 0):
        raise errors.ServerFailed("The model server failed: a test.")
    if context.spec.get("permanent"):
        raise errors.PromptTooLong(9, 5)
    if context.spec.get("bug"):
        raise ValueError("a bug of ours")
    return RowOutcome(Verdict.ACCEPTED, output={}, fingerprint=context.spec.get("fingerprint"))


register_handler("tests.failing", Handler(failing))


@pytest.fixture
def _quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "backoff_seconds", lambda attempt: 0.2)


@pytest.mark.usefixtures("_quick_retries")
@pytest.mark.parametrize(
    ("spec", "status", "attempts", "reason"),
    [
        ({"times": 2}, "accepted", 3, ""),
        ({"times": 3}, "failed", 3, "The model server failed: a test. (tried 3 times)"),
        ({"permanent": True}, "failed", 1, "The prompt has 9 tokens"),
        ({"bug": True}, "failed", 1, "Workbench error in this row"),
    ],
)
async def test_failures(
    make_batch: MakeBatch,
    server: Server,
    spec: dict[str, object],
    status: str,
    attempts: int,
    reason: str,
) -> None:
    batch = await sync_to_async(make_batch)(4, handler="tests.failing", **spec)
    await run_until_done(server)
    async for item in batch.items.all():
        assert (item.status, item.attempts) == (status, attempts)
        assert item.reason.startswith(reason)
    is_well = status == ItemStatus.ACCEPTED
    assert (await fresh(batch)).status == (BatchStatus.DONE if is_well else BatchStatus.FAILED)


async def test_rows_that_all_fail_alike_stop_the_job(make_batch: MakeBatch, server: Server) -> None:
    batch = await sync_to_async(make_batch)(200, handler="tests.failing", permanent=True)
    await run_until_done(server)
    batch = await fresh(batch)
    assert batch.status == BatchStatus.FAILED
    assert "20 consecutive rows failed permanently" in batch.reason
    found = await counts(batch)
    assert found["failed"] < 60
    assert found["pending"] > 100


async def test_a_second_row_with_the_same_fingerprint_is_a_duplicate(
    make_batch: MakeBatch, server: Server
) -> None:
    batch = await sync_to_async(make_batch)(3, handler="tests.failing", fingerprint="same")
    await run_until_done(server)
    assert await counts(batch) == {"accepted": 1, "rejected": 2}
    first = await batch.items.aget(status=ItemStatus.ACCEPTED)
    async for item in batch.items.filter(status=ItemStatus.REJECTED):
        assert (item.code, item.reason) == ("duplicate", f"Duplicate of row {first.index + 1}.")


async def test_an_unknown_handler_fails_the_job(make_batch: MakeBatch, server: Server) -> None:
    batch = await sync_to_async(make_batch)(3, handler="tests.nobody")
    await run_until_done(server)
    batch = await fresh(batch)
    assert (batch.status, await counts(batch)) == (BatchStatus.FAILED, {"pending": 3})


async def test_jobs_take_turns(
    make_batch: MakeBatch, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The small job, queued last, does not wait for the end of the large one."""
    monkeypatch.setattr(
        pump, "fair_queue", SimpleNamespace(FairQueue=lambda: FairQueue(quantum=500))
    )
    large = await sync_to_async(make_batch)(400, max_tokens=50)
    small = await sync_to_async(make_batch)(6)
    working = asyncio.create_task(run_until_done(server))
    await until_stored(lambda: Batch.objects.get(pk=small.pk).status == BatchStatus.DONE)
    assert (await counts(large))["pending"] > 200
    await in_db(services.cancel_batch, large)
    await working


async def test_orphans_of_a_cancelled_job_are_put_back(
    make_batch: MakeBatch, server: Server
) -> None:
    batch = await sync_to_async(make_batch)(3)
    await batch.items.filter(index=0).aupdate(
        status=ItemStatus.RUNNING, server=server.pk, attempts=1
    )
    await Batch.objects.filter(pk=batch.pk).aupdate(status=BatchStatus.CANCELLED)
    assert await in_db(services.servers_to_wake) == [server.pk]
    await run_until_done(server)
    assert await counts(batch) == {"pending": 3}
    assert await in_db(services.servers_to_wake) == []


async def test_a_row_that_takes_the_worker_down_three_times_has_failed(
    make_batch: MakeBatch, server: Server
) -> None:
    batch = await sync_to_async(make_batch)(3)
    await batch.items.filter(index=0).aupdate(
        status=ItemStatus.RUNNING, server=server.pk, attempts=3
    )
    await run_until_done(server)
    assert await counts(batch) == {"accepted": 2, "failed": 1}
    assert "3 times" in (await batch.items.aget(index=0)).reason


async def until_running(batch: Batch, rows: int) -> None:
    await until_stored(lambda: batch.items.filter(status=ItemStatus.RUNNING).count() >= rows)


async def test_which_width_is_best_is_measured_once(
    make_batch: MakeBatch, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1, half and all of the slots in turn; the next job on the server knows it."""
    monkeypatch.setattr(pump_metrics, "MIN_PROBE_ROWS", 30)
    monkeypatch.setattr(
        concurrency_probe, "STEP_SECONDS", 0
    )  # a few rows are enough, however quick they are
    monkeypatch.setattr(pump_state, "WATCH_SECONDS", 0.1)
    batch = await sync_to_async(make_batch)(80, max_tokens=20)
    await run_until_done(server)
    history = await ThroughputHistory.objects.aget(batch=batch)
    assert history.probe is not None
    assert set(history.probe["rates"]) == {"1", "2", "4"}
    assert all(rate > 0 for rate in history.probe["rates"].values())
    assert sum(point[3] for point in history.points) <= 80
    assert all(point[2] <= 4.5 * point[1] for point in history.points)
    again = await sync_to_async(make_batch)(80)
    await run_until_done(server)
    assert await counts(again) == {"accepted": 80}
    assert (await ThroughputHistory.objects.aget(batch=again)).probe is None


async def test_a_trial_that_ends_with_its_job_is_kept(
    make_batch: MakeBatch, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump_metrics, "MIN_PROBE_ROWS", 30)
    monkeypatch.setattr(
        concurrency_probe, "STEP_SECONDS", 0
    )  # a few rows are enough, however quick they are
    monkeypatch.setattr(pump_state, "WATCH_SECONDS", 60)  # nobody looks before the end
    batch = await sync_to_async(make_batch)(40, max_tokens=20)
    await run_until_done(server)
    probe = (await ThroughputHistory.objects.aget(batch=batch)).probe
    assert probe is not None
    assert set(probe["rates"]) == {"1", "2", "4"}


async def test_a_row_whose_slot_was_taken_is_the_next(
    make_batch: MakeBatch, server: Server
) -> None:
    await sync_to_async(make_batch)(6)
    lease = await in_db(leases.acquire, server.pk)
    assert lease is not None
    jobs = ActiveJobs(lease)
    [job] = await jobs.refresh(server, finish=False)
    await jobs.read_rows(job, 4)
    row = job.ready.popleft()
    job.drafts[row.pk] = ResumableCompletion()
    jobs.row_written(row_events.Returned(row, keeps_claim=True))
    assert job.ready[0] is row
    await jobs.read_rows(job, 4)
    assert [row.index for row in job.ready] == [0, 1, 2, 3, 4, 5]  # and it is not read again


async def test_what_its_rows_share_may_change_while_a_job_runs(
    make_batch: MakeBatch, server: Server
) -> None:
    """A pump would otherwise go on by what it read when it found the job."""
    batch = await sync_to_async(make_batch)(4, max_tokens=40)
    lease = await in_db(leases.acquire, server.pk)
    assert lease is not None
    jobs = ActiveJobs(lease)
    [job] = await jobs.refresh(server, finish=False)
    assert job.context.cached(dict) == {"max_tokens": 40}
    await Batch.objects.filter(pk=batch.pk).aupdate(spec={"max_tokens": 1})
    assert await jobs.refresh(server, finish=False) == []
    assert job.context.cached(dict) == {"max_tokens": 1}


async def test_what_a_model_is_may_be_known_only_when_it_was_loaded(
    make_batch: MakeBatch, server: Server
) -> None:
    await sync_to_async(make_batch)(4)
    lease = await in_db(leases.acquire, server.pk)
    assert lease is not None
    jobs = ActiveJobs(lease)
    server.stored_facts = {"models": [{"id": "m", "state": "unloaded"}]}
    [job] = await jobs.refresh(server, finish=False)
    shared = job.context.cached(dict)
    assert not job.context.thinking.thinks
    server.stored_facts = {"models": [{"id": "m", "state": "loaded", "reasoning": True}]}
    await jobs.refresh(server, finish=False)
    assert job.context.thinking.thinks is True
    assert job.context.cached(dict) is shared  # what its rows share was not built again


async def test_a_mistake_in_comparing_rows_fails_its_job_alone(
    server: Server, make_batch: MakeBatch
) -> None:
    mistaken = await in_db(lambda: make_batch(2, handler="tests.mistaken"))
    other = await in_db(lambda: make_batch(2))
    await run_until_done(server)
    await mistaken.arefresh_from_db()
    await other.arefresh_from_db()
    assert (mistaken.status, other.status) == (BatchStatus.FAILED, BatchStatus.DONE)
    assert "Workbench error while comparing rows" in mistaken.reason
    accepted = Item.objects.filter(batch=mistaken, status=ItemStatus.ACCEPTED)
    assert await accepted.acount() == 2


# What a database says whose disk is full: the errors of the drivers themselves.
def _full_sqlite() -> sqlite3.Error:
    with closing(sqlite3.connect(":memory:")) as small:
        small.execute("PRAGMA max_page_count = 2")
        small.execute("CREATE TABLE t (x)")
        with pytest.raises(sqlite3.OperationalError, match="full") as raised:
            small.execute("INSERT INTO t VALUES (zeroblob(100000))")
    return raised.value


FULL_DISKS = [DiskFull("could not extend file: No space left on device"), _full_sqlite()]


def test_which_error_says_that_the_disk_is_full() -> None:
    for native in FULL_DISKS:
        error = OperationalError(str(native))
        assert not disk_space.is_full(error)
        error.__cause__ = native
        assert disk_space.is_full(error)
    error.__cause__ = sqlite3.OperationalError("database is locked")
    assert not disk_space.is_full(error)


@pytest.mark.parametrize("native", FULL_DISKS, ids=["postgresql", "sqlite"])
@pytest.mark.parametrize("refused", ["batch_item", ""], ids=["rows", "everything"])
async def test_a_disk_that_becomes_full_loses_nothing(
    make_batch: MakeBatch, server: Server, llama: LlamaProcess, native: Exception, refused: str
) -> None:
    """Whether it takes only small changes any more or none at all."""
    batch = await sync_to_async(make_batch)(190)  # more than a machine does before it is full
    is_full = threading.Event()
    tries = []

    def edge(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if is_full.is_set() and sql.startswith(("UPDATE", "INSERT")) and refused in sql:
            tries.append(sql)
            raise OperationalError(str(native)) from native
        return execute(sql, params, many, context)

    touched = set()

    def connected(connection: Any, **_: Any) -> None:
        if connection not in touched:
            touched.add(connection)
            connection.execute_wrappers.append(edge)

    connection_created.connect(connected)
    try:
        with llama.slowed():
            working = asyncio.create_task(run_until_done(server))
            await until_stored(lambda: Item.objects.filter(status=ItemStatus.ACCEPTED).count() >= 5)
            is_full.set()
        if refused:
            await until_it_waits(batch, disk_space.FULL)
        else:
            await until_stored(lambda: len(tries) > 10)
        assert not working.done()
        is_full.clear()
        assert await working is False
    finally:
        connection_created.disconnect(connected)
        for connection in touched:
            connection.execute_wrappers.remove(edge)
    batch = await fresh(batch)
    assert (batch.status, batch.reason) == (BatchStatus.DONE, "")
    assert await counts(batch) == {"accepted": 190}
    assert not await batch.items.filter(attempts__gt=1).aexists()  # none was made twice
