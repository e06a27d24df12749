"""Servers with the same model work on one job: none is lost or doubled when one goes or comes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from apps.batch import pump_pool, services
from apps.batch.models import Batch, BatchServer, BatchStatus, ItemStatus
from apps.batch.pump import state as pump_state
from apps.batch.scheduler import circuit_breaker
from apps.runtime.async_db import in_db
from apps.servers.models import DefaultServer, Server, State, Use
from tests.batch.conftest import until_stored
from tests.faults.boxes import Box, MakeBox, running_boxes, working
from tests.faults.model_server import MODEL

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump_pool, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(pump_state, "WATCH_SECONDS", 0.1)
    monkeypatch.setattr(circuit_breaker, "PAUSE_SECONDS", (0.05, 0.1))


@pytest.fixture
def make_box(tmp_path: Path, transactional_db: None) -> Iterator[MakeBox]:
    with running_boxes(tmp_path) as make:
        yield make


async def queued(owner: User, box: Box, rows: int, **options: bool | int) -> Batch:
    return await in_db(
        lambda: services.create_batch(
            owner=owner,
            server=box.server,
            handler="tests.echo",
            spec={},
            inputs=rows,
            options=services.BatchOptions(**options),  # type: ignore[arg-type]
        )
    )


def rows_of(batch: Batch, box: Box) -> int:
    return batch.items.filter(server=box.server.pk, status=ItemStatus.ACCEPTED).count()


def is_done(batch: Batch) -> bool:
    return Batch.objects.get(pk=batch.pk).status == BatchStatus.DONE


def state_of(batch: Batch, box: Box) -> str:
    return str(batch.servers.get(server=box.server).state)


def reason_of(batch: Batch, box: Box) -> str:
    return str(batch.servers.get(server=box.server).reason)


async def assert_each_row_is_there_once(batch: Batch, rows: int) -> None:
    found = [item async for item in batch.items.order_by("index")]
    assert [(item.index, item.status) for item in found] == [
        (index, ItemStatus.ACCEPTED) for index in range(rows)
    ]
    job = await Batch.objects.aget(pk=batch.pk)
    assert job.completion_tokens == sum(item.completion_tokens for item in found)


async def test_a_server_is_killed_and_one_added_in_the_middle(
    alice: User, make_box: MakeBox
) -> None:
    big, small = await sync_to_async(make_box)("Big box"), await sync_to_async(make_box)("Small")
    late = await sync_to_async(make_box)("Late")
    await late.server.adelete()  # it runs, and is added below
    batch = await queued(alice, big, 200, all_servers=True)
    async with working():
        await until_stored(lambda: rows_of(batch, big) > 4 and rows_of(batch, small) > 4)
        small.process.kill()
        await until_stored(lambda: state_of(batch, small) == BatchServer.State.AWAY)
        await until_stored(lambda: reason_of(batch, small).startswith("Waiting for the model serv"))
        claimed = batch.items.filter(server=small.server.pk, finished=None)
        await until_stored(lambda: not claimed.exists())
        await late.server.asave(force_insert=True)
        await until_stored(lambda: rows_of(batch, late) > 4)
        await until_stored(lambda: is_done(batch))
    await assert_each_row_is_there_once(batch, 200)


async def test_a_server_is_taken_back_when_it_answers(alice: User, make_box: MakeBox) -> None:
    big, small = await sync_to_async(make_box)("Big box"), await sync_to_async(make_box)("Small")
    batch = await queued(alice, big, 400, all_servers=True)
    async with working():
        await until_stored(lambda: rows_of(batch, small) > 2)
        big.process.kill()  # the job's own server: the others go on all the same
        await until_stored(lambda: state_of(batch, big) == BatchServer.State.AWAY)
        before = await in_db(lambda: (rows_of(batch, big), rows_of(batch, small)))
        await until_stored(lambda: rows_of(batch, small) > before[1] + 4)
        assert (await Batch.objects.aget(pk=batch.pk)).reason == ""
        await sync_to_async(big.start)()
        await until_stored(lambda: rows_of(batch, big) > before[0] + 4)
        await until_stored(lambda: state_of(batch, big) == BatchServer.State.WORKING)
        await in_db(services.cancel_batch, batch)


async def test_a_job_for_one_server_stays_there(alice: User, make_box: MakeBox) -> None:
    big, small = await sync_to_async(make_box)("Big box"), await sync_to_async(make_box)("Small")
    shared = await queued(alice, big, 10, all_servers=True)
    alone = await queued(alice, big, 10)
    async with working():
        await until_stored(lambda: is_done(shared) and is_done(alone))
    assert await in_db(lambda: rows_of(alone, small)) == 0
    await assert_each_row_is_there_once(alone, 10)


async def test_a_server_with_other_weights_is_left_out(alice: User, make_box: MakeBox) -> None:
    big, small = await sync_to_async(make_box)("Big box"), await sync_to_async(make_box)("Small")
    facts = {"models": [{"id": MODEL, "weights": [7, 7, 7]}]}
    await Server.objects.filter(pk=big.server.pk).aupdate(
        stored_facts={"canaries": {MODEL: "Another answer."}, **facts}, state=State.UNKNOWN
    )
    batch = await queued(alice, big, 30, all_servers=True)
    await BatchServer.objects.abulk_create(
        BatchServer(batch=batch, server=box.server, model=MODEL) for box in (big, small)
    )
    async with working():
        await until_stored(lambda: state_of(batch, small) == BatchServer.State.LEFT_OUT)
        await until_stored(lambda: is_done(batch))
    reason = (await batch.servers.aget(server=small.server)).reason
    assert reason == "“Small” answered a test prompt differently: it serves another model."
    assert await in_db(lambda: rows_of(batch, small)) == 0


async def test_the_fallback_works_only_while_the_server_is_away(
    alice: User, make_box: MakeBox
) -> None:
    big, small = await sync_to_async(make_box)("Big box"), await sync_to_async(make_box)("Small")
    await DefaultServer.objects.acreate(
        use=Use.GENERATION, server=big.server, fallback=small.server
    )
    batch = await queued(alice, big, 400, may_fall_back=True)
    async with working():
        await until_stored(lambda: rows_of(batch, big) > 8)
        assert await in_db(lambda: rows_of(batch, small)) == 0
        big.process.kill()
        await until_stored(lambda: rows_of(batch, small) > 4)
        await sync_to_async(big.start)()
        await until_stored(lambda: state_of(batch, big) == BatchServer.State.WORKING)
        claimed = batch.items.filter(server=small.server.pk, finished=None)
        await until_stored(lambda: not claimed.exists())
        await in_db(services.cancel_batch, batch)


async def test_a_limit_of_parallel_rows_is_shared(alice: User, make_box: MakeBox) -> None:
    big, small = await sync_to_async(make_box)("Big box"), await sync_to_async(make_box)("Small")
    batch = await queued(alice, big, 40, all_servers=True, width=2)
    most = 0
    async with working():

        def is_over() -> bool:
            nonlocal most
            most = max(most, batch.items.filter(status=ItemStatus.RUNNING).count())
            return is_done(batch)

        await until_stored(lambda: rows_of(batch, small) > 0 or is_done(batch))
        await until_stored(is_over)
    assert most <= 2
    assert await in_db(lambda: rows_of(batch, small)) > 0


async def test_the_rows_of_a_removed_server_return(alice: User, make_box: MakeBox) -> None:
    big, small = await sync_to_async(make_box)("Big box"), await sync_to_async(make_box)("Small")
    batch = await queued(alice, big, 60, all_servers=True)
    async with working():
        await until_stored(lambda: rows_of(batch, small) > 4)
        await big.server.adelete()  # the job's own one
        await until_stored(lambda: is_done(batch))
    await assert_each_row_is_there_once(batch, 60)
    assert (await Batch.objects.aget(pk=batch.pk)).server_id == small.server.pk
