"""A server that fails, a key or an address that changes, a job that cannot be read: who pays."""

import asyncio
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError
from redis.exceptions import ConnectionError as RedisConnectionError

from apps.batch import services
from apps.batch.handlers import (
    Handler,
    JobContext,
    RowInput,
    RowOutcome,
    Verdict,
    register_handler,
)
from apps.batch.models import Batch, BatchStatus, ItemStatus, PumpLease
from apps.batch.pump import pump, retry, watcher
from apps.batch.pump import state as pump_state
from apps.batch.pump.active_jobs import ActiveJobs
from apps.batch.scheduler import circuit_breaker
from apps.batch.store import job_writes, leases
from apps.batch.store.row_events import Finished
from apps.llm import errors
from apps.llm.permits import SlotTerms
from apps.runtime.async_db import in_db
from apps.servers.models import Kind, Server
from apps.servers.services import slot_terms
from tests.batch.conftest import MakeBatch, run_until_done, until_stored

pytestmark = pytest.mark.django_db(transaction=True)


class Trouble:
    """What the handler raises, until it is made well."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.asked = 0
        self.base_urls: list[str] = []
        self.gate: asyncio.Event | None = None


trouble = Trouble()


async def troubled(row: RowInput, context: JobContext[Any]) -> RowOutcome:
    trouble.asked += 1
    trouble.base_urls.append(context.client.endpoint.base_url)
    if trouble.gate is not None:
        await trouble.gate.wait()
    if trouble.error is not None:
        raise trouble.error
    return RowOutcome(Verdict.ACCEPTED, output={"index": row.index}, raw="words " * 20)


def unreadable(batch_id: int, spec: dict[str, Any]) -> None:
    if spec.get("unreadable"):
        raise ValueError("“categories” is no kind of column.")


register_handler("tests.troubled", Handler(troubled))
register_handler("tests.unreadable", Handler(troubled, post_process=unreadable))


@pytest.fixture(autouse=True)
def _well(monkeypatch: pytest.MonkeyPatch) -> None:
    trouble.__init__()  # type: ignore[misc]
    monkeypatch.setattr(pump_state, "WATCH_SECONDS", 0.05)
    monkeypatch.setattr(circuit_breaker, "PAUSE_SECONDS", (0.02, 0.05))
    monkeypatch.setattr(retry, "BACKOFF_SECONDS", 0.02)


async def until_looked(server: Server, times: int) -> None:
    """Wait until the watcher has looked that often from now on: each look renews the lease."""
    beats = set()

    def has_looked() -> bool:
        beats.add(PumpLease.objects.get(server=server).heartbeat)
        return len(beats) > times

    await until_stored(has_looked)


def reason(batch: Batch) -> str:
    return Batch.objects.get(pk=batch.pk).reason


@pytest.mark.parametrize(
    "error",
    [
        errors.BackendGone("The proxy answers, the model server behind it does not."),
        errors.ServerFailed("The model server failed: CUDA error"),
        errors.Stalled("A proxy gave up waiting."),
    ],
)
async def test_no_row_fails_while_its_server_fails_them_all(
    make_batch: MakeBatch, server: Server, error: errors.LLMError
) -> None:
    """The model list still answers, as a proxy's does: only the rows tell."""
    trouble.error = error
    batch = await sync_to_async(make_batch)(100, handler="tests.troubled")
    working = asyncio.create_task(run_until_done(server))

    def is_waiting() -> bool:
        """Read at once: a starved pump hears nothing of its rows and takes the reason back."""
        shown = reason(batch)
        return shown.startswith("Waiting for the model server: ") and str(error) in shown

    await until_stored(lambda: is_waiting() and trouble.asked >= 60)
    assert not await batch.items.filter(status=ItemStatus.FAILED).aexists()
    trouble.error = None
    assert await working is False
    assert await batch.items.filter(status=ItemStatus.ACCEPTED).acount() == 100
    paid = [item async for item in batch.items.filter(attempts__gt=1)]
    assert len(paid) < circuit_breaker.FAILED_ROWS_TO_OPEN
    assert (await Batch.objects.aget(pk=batch.pk)).reason == ""


async def test_rows_that_fail_among_others_pay_themselves(
    make_batch: MakeBatch, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails_sometimes(row: RowInput, context: JobContext[Any]) -> RowOutcome:
        if row.index % 3 == 0:
            raise errors.ServerFailed("The model server failed: Compute error.")
        return await troubled(row, context)

    register_handler("tests.fails_sometimes", Handler(fails_sometimes))
    batch = await sync_to_async(make_batch)(12, handler="tests.fails_sometimes")
    await run_until_done(server)
    failed = [item.attempts async for item in batch.items.filter(status=ItemStatus.FAILED)]
    accepted = await batch.items.filter(status=ItemStatus.ACCEPTED).acount()
    assert accepted == 8
    assert failed == [3, 3, 3, 3]


@pytest.mark.parametrize("error", [errors.LoadFailed, errors.NotLoaded, errors.UnknownModel])
async def test_a_model_that_cannot_run_pauses_its_job_at_once(
    make_batch: MakeBatch, server: Server, error: type[errors.LLMError]
) -> None:
    trouble.error = error("The model failed to start.")
    batch = await sync_to_async(make_batch)(30, handler="tests.troubled")
    await run_until_done(server)
    found = await Batch.objects.aget(pk=batch.pk)
    assert (found.status, found.reason) == (BatchStatus.PAUSED, "The model failed to start.")
    assert await batch.items.filter(status=ItemStatus.PENDING, attempts=0).acount() == 30
    assert trouble.asked <= 4  # those that were in flight already


async def test_a_locked_database_at_a_check_of_the_server_ends_no_pump(
    make_batch: MakeBatch, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = 0
    check = watcher.ServerCheck.check

    async def locked_once(self: watcher.ServerCheck, **age: Any) -> None:
        nonlocal checks
        checks += 1
        if checks == 2:
            raise OperationalError("database is locked")
        await check(self, **age)

    monkeypatch.setattr(watcher.ServerCheck, "check", locked_once)
    monkeypatch.setattr(watcher, "CHECK_EVERY_SECONDS", 0)
    trouble.gate = asyncio.Event()
    batch = await sync_to_async(make_batch)(5, handler="tests.troubled")
    working = asyncio.create_task(run_until_done(server))
    await until_stored(lambda: checks > 2)
    trouble.gate.set()
    assert await working is False
    assert await batch.items.filter(status=ItemStatus.ACCEPTED).acount() == 5


@pytest.mark.parametrize("hiccup", [RedisConnectionError("away"), OperationalError("locked")])
async def test_a_hiccup_while_an_error_is_noted_fails_no_row(
    make_batch: MakeBatch, server: Server, monkeypatch: pytest.MonkeyPatch, hiccup: Exception
) -> None:
    trouble.error = errors.Busy("The server takes no more requests.", 0.01)

    async def refused(*_: object) -> None:
        trouble.error = None
        raise hiccup

    monkeypatch.setattr("apps.servers.slots.hold_slot.back_off", refused)
    batch = await sync_to_async(make_batch)(5, handler="tests.troubled")
    await run_until_done(server)
    assert await batch.items.filter(status=ItemStatus.ACCEPTED).acount() == 5


async def test_a_job_that_cannot_be_read_fails_alone(make_batch: MakeBatch, server: Server) -> None:
    bad = await sync_to_async(make_batch)(3, handler="tests.unreadable", unreadable=True)
    good = await sync_to_async(make_batch)(3, handler="tests.troubled")
    await run_until_done(server)
    bad = await Batch.objects.aget(pk=bad.pk)
    assert (bad.status, (await Batch.objects.aget(pk=good.pk)).status) == ("failed", "done")
    assert "“categories” is no kind of column." in bad.reason


async def test_a_new_address_reaches_a_pump_at_work(make_batch: MakeBatch, server: Server) -> None:
    trouble.gate = asyncio.Event()
    batch = await sync_to_async(make_batch)(40, handler="tests.troubled")
    working = asyncio.create_task(run_until_done(server))
    await until_stored(lambda: trouble.asked == 4)
    other = server.base_url.replace("127.0.0.1", "localhost")
    await Server.objects.filter(pk=server.pk).aupdate(base_url=other, checked_at=None)
    await until_stored(
        lambda: Server.objects.get(pk=server.pk).checked_at
    )  # it refreshed at the new one
    trouble.gate.set()
    trouble.gate = None
    await working
    assert await batch.items.filter(status=ItemStatus.ACCEPTED).acount() == 40
    assert trouble.base_urls[-1] == other


async def test_rows_that_wait_for_a_slot_do_not_start_once_their_job_is_paused(
    make_batch: MakeBatch, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row has the only slot, three of the job wait for it."""
    trouble.gate = asyncio.Event()
    monkeypatch.setattr("apps.servers.slots.hold_slot.slot_terms", _one_slot)
    batch = await sync_to_async(make_batch)(20, handler="tests.troubled")
    working = asyncio.create_task(run_until_done(server))
    await until_stored(lambda: trouble.asked == 1)
    await in_db(services.pause_batch, batch)
    await until_looked(server, 3)
    trouble.gate.set()
    await working
    assert trouble.asked == 1


def _one_slot(server: Server, model: str) -> SlotTerms:
    return replace(slot_terms(server, model), slots=1)


def test_rows_in_flight_at_a_server_that_was_removed_are_put_back(
    make_batch: MakeBatch, server: Server
) -> None:
    batch = make_batch(3)
    batch.items.filter(index=0).update(status=ItemStatus.RUNNING, server=server.pk)
    server.delete()
    services.servers_to_wake()
    batch.refresh_from_db()
    assert batch.status == BatchStatus.FAILED
    assert not batch.items.filter(status=ItemStatus.RUNNING).exists()


async def test_a_row_may_take_hours(
    make_batch: MakeBatch, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing ends a pump at work but its jobs and who stops it."""
    trouble.gate = asyncio.Event()
    batch = await sync_to_async(make_batch)(4, handler="tests.troubled")
    working = asyncio.create_task(run_until_done(server))
    await until_stored(lambda: batch.items.filter(status=ItemStatus.RUNNING).count() == 4)
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 10 * 3600, time=time.time)
    monkeypatch.setattr(pump, "time", later)
    monkeypatch.setattr(watcher, "time", later)
    await until_looked(server, 10)
    assert not working.done()
    trouble.gate.set()
    assert await working is False
    rows = [(item.status, item.attempts) async for item in batch.items.all()]
    assert (rows, trouble.asked) == ([(ItemStatus.ACCEPTED, 1)] * 4, 4)


async def test_a_server_that_refuses_is_named_at_the_job(
    make_batch: MakeBatch, server: Server
) -> None:
    trouble.error = errors.Busy("The server takes no more requests for now: 20 a minute.", 0.05)
    batch = await sync_to_async(make_batch)(4, handler="tests.troubled")
    working = asyncio.create_task(run_until_done(server))
    await until_stored(
        lambda: reason(batch).startswith("Slowed down: The server takes no more requests")
    )
    trouble.error = None
    await working
    found = await Batch.objects.aget(pk=batch.pk)
    assert (found.status, found.reason) == (BatchStatus.DONE, "")
    assert not await batch.items.exclude(attempts=1).aexists()


async def test_a_job_is_not_done_while_a_row_is_not_written_yet(
    make_batch: MakeBatch, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a row may be accepted a moment later, and has then to be compared with the others."""
    batch = await sync_to_async(make_batch)(1, handler="tests.unreadable")
    lease = await in_db(leases.acquire, server.pk)
    assert lease is not None
    jobs = ActiveJobs(lease)
    [job] = await jobs.refresh(server, finish=True)
    await jobs.read_rows(job, 10)
    asked: list[list[int]] = []

    def finish_batches(lease: object, batch_ids: list[int]) -> list[int]:
        asked.append(list(batch_ids))
        return []

    monkeypatch.setattr(job_writes, "finish_batches", finish_batches)
    await jobs.refresh(server, finish=True)
    [row] = job.ready
    job.ready.clear()
    jobs.row_written(Finished(row, RowOutcome(Verdict.ACCEPTED), 0.0))
    await jobs.refresh(server, finish=True)
    assert asked == [[], [batch.pk]]


def test_the_width_of_a_job_behind_a_router_is_its_models(make_batch: MakeBatch) -> None:
    batch = make_batch(1)
    server = Server(kind=Kind.ROUTER, state="ready")
    server.stored_facts = {"slots": 2, "models": [{"id": "a", "slots": 2}, {"id": "b", "slots": 4}]}
    batch.server, batch.model = server, "b"
    assert services.compute_progress(batch).width == 4
