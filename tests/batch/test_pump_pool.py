"""All pumps of one process: many servers side by side, woken, shared, started again."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import DatabaseError
from redis.exceptions import ConnectionError as RedisConnectionError

from apps.batch import pump_heartbeat, pump_pool, services
from apps.batch.jobs.progress import NO_WORKER
from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.batch.pump import state as pump_state
from apps.batch.pump_pool import PumpPool
from apps.batch.services import wake_pump
from apps.batch.store import job_writes
from apps.runtime.async_db import in_db
from apps.servers.models import Server, State
from bench.chat.stream import paced_server
from tests.batch.conftest import MakeBatch, until_stored
from tests.llama_process import LlamaProcess

pytestmark = pytest.mark.django_db(transaction=True)


@asynccontextmanager
async def running() -> AsyncIterator[PumpPool]:
    """One process's pumps, while the block lasts."""
    stop = asyncio.Event()
    found = PumpPool(stop.is_set)
    task = asyncio.create_task(found.run())
    try:
        yield found
    finally:
        stop.set()
        found.wake()
        async with asyncio.timeout(150):
            await task


async def servers_like(llama: LlamaProcess, number: int) -> list[Server]:
    """As many servers, for all we know; in truth one."""
    found = []
    for at in range(number):
        server = Server(name=f"Server {at}", base_url=llama.base_url, state=State.UNKNOWN)
        server.set_key(llama.api_key)
        await server.asave()
        found.append(server)
    return found


async def queued(
    owner: User, server: Server, rows: int, *, width: int | None = None, **spec: Any
) -> Batch:
    return await in_db(
        lambda: services.create_batch(
            owner=owner,
            server=server,
            handler="tests.echo",
            spec=spec,
            inputs=rows,
            options=services.BatchOptions(width=width),
        )
    )


async def test_ten_servers_get_equal_shares_of_one_process(alice: User) -> None:
    rows = 30
    with paced_server() as url:
        jobs = []
        for at in range(10):
            server = Server(name=f"Server {at}", base_url=url, parallel=2, state=State.UNKNOWN)
            await server.asave()
            jobs.append(await queued(alice, server, 400, width=2, max_tokens=15))

        def finished() -> list[int]:
            found = Counter(
                Item.objects.filter(status=ItemStatus.ACCEPTED).values_list("batch", flat=True)
            )
            return [found[job.pk] for job in jobs]

        async with running():
            await until_stored(lambda: min(finished()) > 0)
            before = await in_db(finished)
            await until_stored(lambda: sum(finished()) - sum(before) >= rows * len(jobs))
            after = await in_db(finished)
    shares = [end - start for start, end in zip(before, after, strict=True)]
    mean = sum(shares) / len(shares)
    assert all(abs(share - mean) <= 0.2 * mean for share in shares), shares


async def test_a_job_that_is_queued_meanwhile_starts_at_once(
    alice: User, llama: LlamaProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump_pool, "POLL_SECONDS", 600.0)  # it has to be woken
    one, other = await servers_like(llama, 2)
    first = await queued(alice, one, 10_000, max_tokens=40)
    async with running():
        await until_stored(lambda: first.items.filter(status=ItemStatus.ACCEPTED).exists())
        second = await queued(alice, other, 4)
        await in_db(wake_pump, other.pk)
        await until_stored(lambda: Batch.objects.get(pk=second.pk).status == BatchStatus.DONE)
        assert (await Batch.objects.aget(pk=first.pk)).status == BatchStatus.RUNNING


async def test_batch_without_a_wake_message_is_found_by_polling(
    make_batch: MakeBatch, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump_pool, "POLL_SECONDS", 0.05)
    async with running():
        batch = await sync_to_async(make_batch)(4)
        await until_stored(lambda: Batch.objects.get(pk=batch.pk).status == BatchStatus.DONE)


async def test_two_processes_share_the_servers(alice: User, llama: LlamaProcess) -> None:
    servers = await servers_like(llama, 4)
    jobs = [await queued(alice, server, 30) for server in servers]
    async with running(), running():
        await until_stored(
            lambda: not Batch.objects.exclude(status=BatchStatus.DONE).exists(),
        )
    for job in jobs:
        attempts = [item.attempts async for item in job.items.all()]
        assert attempts == [1] * 30


async def test_an_error_of_ours_is_said_and_tried_again(
    make_batch: MakeBatch, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    recover, calls = job_writes.recover_rows, iter(range(10))

    def fails_once(*args: Any) -> Any:
        if next(calls) == 0:
            raise DatabaseError("a column is missing")
        return recover(*args)

    monkeypatch.setattr(job_writes, "recover_rows", fails_once)
    monkeypatch.setattr(pump_pool, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(pump_pool, "RESTART_SECONDS", (0.5, 0.5))
    batch = await sync_to_async(make_batch)(4)
    async with running():
        await until_stored(lambda: "worker log" in Batch.objects.get(pk=batch.pk).reason)
        await until_stored(lambda: Batch.objects.get(pk=batch.pk).status == BatchStatus.DONE)
    assert (await Batch.objects.aget(pk=batch.pk)).reason == ""


async def test_a_queued_job_says_what_it_waits_for(make_batch: MakeBatch, server: Server) -> None:
    batch = await sync_to_async(make_batch)(4)
    assert await in_db(services.wait_reason, batch) == NO_WORKER
    await pump_heartbeat.beat()
    assert await in_db(services.wait_reason, batch) == "Waiting for a free worker."
    assert await in_db(lambda: pump_heartbeat.is_pump_alive(on_this_machine=True))
    await pump_heartbeat.sign_off()
    assert not await in_db(pump_heartbeat.is_pump_alive)


async def test_a_job_whose_turn_has_not_come_says_so(
    alice: User, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.batch.pump.wait_reason.MIN_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(pump_state, "WATCH_SECONDS", 0.05)
    monkeypatch.setattr("apps.batch.scheduler.fair_queue.QUANTUM_TOKENS", 10**9)
    first = await queued(alice, server, 10_000, max_tokens=400)
    async with running():
        await until_stored(lambda: first.items.filter(status=ItemStatus.RUNNING).count() == 4)
        second = await queued(alice, server, 4)
        await in_db(wake_pump, server.pk)
        await until_stored(lambda: Batch.objects.get(pk=second.pk).reason.startswith("Waiting for"))
        await in_db(services.cancel_batch, first)
        await until_stored(lambda: Batch.objects.get(pk=second.pk).status == BatchStatus.DONE)
    assert (await Batch.objects.aget(pk=second.pk)).reason == ""


async def test_a_page_of_jobs_waits_once_for_a_redis_that_is_away(
    make_batch: MakeBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = await sync_to_async(make_batch)(1)
    asked = 0

    def away() -> None:
        nonlocal asked
        asked += 1
        raise RedisConnectionError("nobody there")

    monkeypatch.setattr(pump_heartbeat, "_redis_down_until", 0.0)
    monkeypatch.setattr(pump_heartbeat, "sync_redis", lambda: SimpleNamespace(time=away))
    reasons = {await in_db(services.wait_reason, batch) for _ in range(10)}
    assert (reasons, asked) == ({"Waiting for Redis: it does not answer."}, 1)
