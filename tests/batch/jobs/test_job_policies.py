"""Refill, yield and budget: exactly the rows that were asked for, or the reason why not."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

from apps.batch import services
from apps.batch.errors import WrongState
from apps.batch.handlers import (
    Handler,
    JobContext,
    RowInput,
    RowOutcome,
    Verdict,
    register_handler,
)
from apps.batch.jobs import extend, job_policies
from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.batch.pump import state as pump_state
from apps.batch.store import items
from apps.llm import errors
from apps.llm.events import Usage
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from tests.batch.conftest import run_until_done

pytestmark = pytest.mark.django_db(transaction=True)


async def picky(row: RowInput, context: JobContext[Any]) -> RowOutcome:
    """Accepts every `every`-th try of a row; `never` at all; fails one in `fails`."""
    if row.index % context.spec.get("fails", 10_000) == (context.spec.get("fails") != 1):
        raise errors.PromptTooLong(9, 5)
    good = row.index % context.spec.get("every", 1) == 0 and not context.spec.get("never")
    usage = Usage(0, 0, 0) if context.spec.get("silent") else Usage(10, 0, 10)
    return RowOutcome(
        Verdict.ACCEPTED if good else Verdict.REJECTED,
        output={"place": row.input["for"] if row.input else row.index},
        code="" if good else "schema",
        reason="" if good else "Not good enough.",
        usage=usage,
        raw="word " * 16,
    )


register_handler("tests.picky", Handler(picky))


@pytest.fixture
def make(alice: User, server: Server) -> Any:
    def make_batch(rows: int, *, spec: dict[str, Any] | None = None, **options: Any) -> Batch:
        return services.create_batch(
            owner=alice,
            server=server,
            handler="tests.picky",
            spec=spec or {},
            inputs=[None] * rows,
            options=services.BatchOptions(**options),
        )

    return sync_to_async(make_batch)


async def fresh(batch: Batch) -> Batch:
    return await Batch.objects.select_related("server").aget(pk=batch.pk)


async def accepted(batch: Batch) -> list[Item]:
    items = batch.items.filter(status=ItemStatus.ACCEPTED).order_by("index")
    return [item async for item in items]


async def test_refills_until_each_row_asked_for_is_accepted_once(
    make: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        pump_state, "WATCH_SECONDS", 600
    )  # slots do not wait for the next look around
    batch = await make(30, refill=True, tries=10, spec={"every": 3, "fails": 7})
    await run_until_done(server)
    batch = await fresh(batch)
    assert (batch.status, batch.reason, batch.goal) == (BatchStatus.DONE, "", 30)
    good = await accepted(batch)
    assert sorted(item.original_index for item in good) == list(range(30))
    assert all(item.output == {"place": item.original_index} for item in good)
    items = [item async for item in batch.items.order_by("index")]
    assert [item.index for item in items] == list(range(batch.total))
    bad = [item for item in items if item.status != ItemStatus.ACCEPTED]
    assert all(item.replaced and item.reason for item in bad)
    assert len(items) == 30 + len(bad)


async def test_rejected_rows_are_not_replaced_in_a_job_without_refill(
    make: Any, server: Server
) -> None:
    batch = await make(12, spec={"every": 3})
    await run_until_done(server)
    batch = await fresh(batch)
    assert (batch.status, batch.total) == (BatchStatus.DONE, 12)
    assert len(await accepted(batch)) == 4


async def test_a_yield_that_is_too_low_stops_the_job_with_the_reason(
    make: Any, server: Server
) -> None:
    batch = await make(300, refill=True, spec={"every": 50})
    await run_until_done(server)
    batch = await fresh(batch)
    assert batch.status == BatchStatus.FAILED
    assert "of 300 rows: Only" in batch.reason
    # Tended once a second: a few rows more are made where a row takes no time at all.
    assert len(await accepted(batch)) < 30


async def test_a_small_job_stops_after_so_many_tries(make: Any, server: Server) -> None:
    batch = await make(6, refill=True, tries=5, spec={"never": True})
    await run_until_done(server)
    batch = await fresh(batch)
    assert (batch.status, batch.total) == (BatchStatus.FAILED, 30)
    assert batch.reason.startswith("Stopped with 0 of 6 rows: The limit of 30 attempts")


async def test_a_stopped_job_can_be_let_go_on(make: Any, server: Server) -> None:
    batch = await make(6, refill=True, tries=5, spec={"never": True})
    await run_until_done(server)
    await Batch.objects.filter(pk=batch.pk).aupdate(spec={"every": 1})
    await in_db(services.resume_batch, await fresh(batch))
    await run_until_done(server)
    batch = await fresh(batch)
    assert (batch.status, batch.reason) == (BatchStatus.DONE, "")
    assert sorted(item.original_index for item in await accepted(batch)) == list(range(6))


async def test_tending_twice_changes_nothing(make: Any, server: Server) -> None:
    batch = await make(10, refill=True)
    await batch.items.filter(index__lt=4).aupdate(
        status=ItemStatus.REJECTED, finished=timezone.now()
    )
    for _ in range(3):
        await in_db(job_policies.enforce_policies, server.pk)
        assert (await fresh(batch)).total == 14
    inputs = [item.input async for item in batch.items.order_by("index")]
    assert inputs == [None] * 10 + [{"for": at} for at in range(4)]


async def test_rows_are_added_to_a_job_that_is_done(make: Any, server: Server) -> None:
    batch = await make(10, refill=True, tries=10, spec={"every": 2})
    await run_until_done(server)
    await in_db(services.add_rows, batch, 5)
    assert (batch.status, batch.goal) == (BatchStatus.QUEUED, 15)
    await run_until_done(server)
    assert (await fresh(batch)).status == BatchStatus.DONE
    assert sorted(item.original_index for item in await accepted(batch)) == list(range(15))


async def test_rows_cannot_be_added_to_a_cancelled_job(make: Any) -> None:
    batch = await make(3)
    await in_db(services.cancel_batch, batch)
    with pytest.raises(WrongState):
        await in_db(services.add_rows, batch, 5)


async def test_a_restored_row_takes_the_place_of_its_replacement(make: Any, server: Server) -> None:
    batch = await make(3, refill=True)
    await batch.items.filter(index=0).aupdate(
        status=ItemStatus.REJECTED, output={"place": 0}, finished=timezone.now()
    )
    await in_db(job_policies.enforce_policies, server.pk)
    item = await batch.items.aget(index=0)
    await in_db(services.accept_row, item)
    assert (item.status, item.reviewed) == (ItemStatus.ACCEPTED, True)
    assert await batch.items.acount() == 3
    await run_until_done(server)
    assert sorted(item.original_index for item in await accepted(batch)) == [0, 1, 2]
    with pytest.raises(WrongState, match="Only rejected rows"):
        await in_db(services.accept_row, item)


async def test_refill_does_not_replace_a_row_restored_meanwhile(make: Any) -> None:
    batch = await make(3, refill=True)
    await batch.items.filter(index__lt=2).aupdate(
        status=ItemStatus.REJECTED, output={"place": 0}, finished=timezone.now()
    )
    bad = [item async for item in batch.items.filter(status=ItemStatus.REJECTED)]
    item = await batch.items.aget(index=0)
    await in_db(services.accept_row, item)
    assert await in_db(job_policies.create_replacements, batch, bad) == 1
    assert [row.input async for row in batch.items.filter(index=3)] == [{"for": 1}]
    await item.arefresh_from_db()
    assert not item.replaced


async def test_replacement_row_that_has_just_started_is_kept(make: Any, server: Server) -> None:
    batch = await make(1, refill=True)
    await batch.items.aupdate(status=ItemStatus.REJECTED, output={}, finished=timezone.now())
    await in_db(job_policies.enforce_policies, server.pk)
    await batch.items.filter(index=1).aupdate(status=ItemStatus.RUNNING)
    item = await batch.items.aget(index=0)
    await in_db(services.accept_row, item)
    assert await batch.items.acount() == 2
    assert item.replaced


async def test_row_rejected_by_a_person_is_replaced(make: Any, server: Server) -> None:
    batch = await make(3, refill=True)
    await batch.items.filter(index=1).aupdate(status=ItemStatus.ACCEPTED, finished=timezone.now())
    item = await batch.items.aget(index=1)
    await in_db(services.reject_row, item)
    assert item.code == "by_hand"
    await run_until_done(server)
    assert sorted(item.original_index for item in await accepted(batch)) == [0, 1, 2]
    with pytest.raises(WrongState, match="Only accepted rows"):
        await in_db(services.reject_row, item)


async def test_a_budget_pauses_the_job_until_tomorrow(make: Any, server: Server) -> None:
    batch = await make(600, daily_tokens=100)
    await Batch.objects.filter(pk=batch.pk).aupdate(
        completion_tokens=500, day=timezone.localdate(), tokens_before_day=400
    )
    await run_until_done(server)
    batch = await fresh(batch)
    assert batch.status == BatchStatus.PAUSED
    assert "The daily limit of 100 tokens is reached" in batch.reason
    assert await in_db(services.servers_to_wake) == []
    yesterday = timezone.localdate() - timedelta(days=1)
    await Batch.objects.filter(pk=batch.pk).aupdate(
        day=yesterday, resumes_on=timezone.localdate(), daily_tokens=10**9
    )
    assert await in_db(services.servers_to_wake) == [server.pk]
    assert (await fresh(batch)).status == BatchStatus.QUEUED


@pytest.mark.parametrize("silent", [False, True])
async def test_a_small_budget_is_kept_to_the_row(make: Any, server: Server, silent: bool) -> None:
    """20 tokens a row, also by an estimate where the server reports no usage."""
    batch = await make(600, daily_tokens=1000, spec={"silent": silent})
    await run_until_done(server)
    batch = await fresh(batch)
    assert batch.status == BatchStatus.PAUSED
    assert 1000 <= batch.spent_today < 1000 + 20
    assert ("reports no usage" in batch.reason) is silent
    assert (batch.completion_tokens == 0) is silent  # an estimate is never shown as a count


async def test_rows_added_to_a_job_that_rests_for_the_day_wait_for_tomorrow(
    make: Any, server: Server
) -> None:
    batch = await make(600, daily_tokens=100)
    await run_until_done(server)
    await in_db(services.add_rows, batch, 5)
    batch = await fresh(batch)
    assert (batch.status, batch.total) == (BatchStatus.PAUSED, 605)
    assert batch.resumes_on == timezone.localdate() + timedelta(days=1)
    await in_db(services.resume_batch, batch)
    assert (await fresh(batch)).resumes_on is None


async def test_many_rows_are_added_in_short_transactions(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extend, "INSERT_ROWS", 4)
    batch = await make(3, refill=True)
    seen: list[int] = []
    add_items = items.add_items

    def counted(*args: Any, **options: Any) -> int:
        seen.append(add_items(*args, **options))
        return seen[-1]

    monkeypatch.setattr(extend, "add_items", counted)
    await in_db(services.add_rows, batch, 10)
    assert seen == [4, 4, 2]
    assert ((await fresh(batch)).goal, (await fresh(batch)).total) == (13, 13)
    assert [item.original_index async for item in batch.items.order_by("index")] == list(range(13))


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite locks as a whole")
async def test_a_refill_waits_for_rows_that_are_being_added(make: Any, server: Server) -> None:
    batch = await make(3, refill=True)
    await batch.items.filter(index=0).aupdate(status=ItemStatus.REJECTED, finished=timezone.now())
    added, refilled = threading.Event(), threading.Event()

    def add() -> None:
        with transaction.atomic():
            services.add_rows(batch, 2)
            added.set()
            refilled.wait(30)

    adding = asyncio.create_task(asyncio.to_thread(add))
    await asyncio.to_thread(added.wait, 30)
    assert await in_db(job_policies.enforce_policies, server.pk) == []
    refilled.set()
    await adding
    assert await in_db(job_policies.enforce_policies, server.pk) == [batch.pk]
    assert [item.original_index async for item in batch.items.order_by("index")] == [
        0,
        1,
        2,
        3,
        4,
        0,
    ]


@pytest.mark.parametrize(
    ("spec", "status", "reason"),
    [
        ({"fails": 1}, BatchStatus.FAILED, "All rows failed."),
        ({"never": True}, BatchStatus.DONE, "No row was accepted."),
        ({}, BatchStatus.DONE, ""),
    ],
)
async def test_a_job_without_a_row_does_not_end_well(
    make: Any, server: Server, spec: dict[str, Any], status: str, reason: str
) -> None:
    batch = await make(1, spec=spec)
    await run_until_done(server)
    batch = await fresh(batch)
    assert batch.status == status
    assert batch.reason.partition(".")[0] == reason.partition(".")[0]


async def test_the_budget_of_a_day_begins_with_what_was_spent_before(
    make: Any, server: Server
) -> None:
    batch = await make(3, daily_tokens=100)
    await Batch.objects.filter(pk=batch.pk).aupdate(completion_tokens=500)
    await in_db(job_policies.enforce_policies, server.pk)
    batch = await fresh(batch)
    assert (batch.status, batch.tokens_before_day) == (BatchStatus.QUEUED, 500)


async def test_deleting_takes_the_rows_along(make: Any) -> None:
    batch = await make(5)
    await in_db(services.delete_batch, batch)
    assert not await Item.objects.aexists()
