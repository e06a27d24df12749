"""Rows beside people, behind proxies and on servers that hold few models: the pump's manners."""

import asyncio
from collections.abc import Iterator

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from pytest_django import Settings

from apps.batch import services
from apps.batch.models import ACTIVE, Batch, BatchStatus, Item
from apps.llm import permits
from apps.llm.permits import Lane
from apps.llm.stream.sse_reader import WholeAnswer
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.services import hold_slot, refresh_server, slot_terms
from tests.batch.conftest import MakeBatch, run_until_done, until_stored
from tests.llama_process import LlamaProcess
from tests.standins import Model, Standin
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _nobody_stays(settings: Settings) -> None:
    settings.IDLE_AFTER_CHAT_SECONDS = 0


async def all_accepted(batch: Batch) -> list[Item]:
    rows = [row async for row in batch.items.all()]
    assert {row.status for row in rows} == {"accepted"}
    return rows


async def occupancy(server: Server) -> permits.Occupancy:
    return await permits.read_occupancy(slot_terms(server))


async def until_in_flight(server: Server, rows: int) -> None:
    async def is_reached() -> bool:
        return (await permits.permits_in_flight(server.pk))[Lane.BATCH] == rows

    await until(is_reached)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[WholeAnswer]:
    """Every answer of a row, as far as it has been received."""
    found: list[WholeAnswer] = []

    def make_answer() -> WholeAnswer:
        found.append(WholeAnswer())
        return found[-1]

    monkeypatch.setattr("apps.llm.client.WholeAnswer", make_answer)
    return found


async def until_received(answers: list[WholeAnswer], pieces: int) -> None:
    """Until the answer in each slot has so many."""

    async def is_received() -> bool:
        return len(answers) == 4 and all(len(answer.text) >= pieces for answer in answers)

    await until(is_received)


async def test_row_that_lost_its_slot_to_a_question_resumes_its_text(
    make_batch: MakeBatch, server: Server, llama: LlamaProcess, answers: list[WholeAnswer]
) -> None:
    batch = await sync_to_async(make_batch)(5, max_tokens=900)
    seen = await refresh_server(server)
    with llama.slowed():
        working = asyncio.create_task(run_until_done(server))
        await until_received(answers, 60)
        async with hold_slot(seen, lane=Lane.INTERACTIVE):
            assert (await permits.permits_in_flight(server.pk))[Lane.BATCH] == 3
    await working
    rows = await all_accepted(batch)
    assert {row.attempts for row in rows} == {1}  # what a person's question cost is nobody's fault
    *whole, resumed = sorted(row.prompt_tokens for row in rows)
    # What had been received was read, not written again.
    assert resumed >= max(whole) + 30
    assert all(row.completion_tokens <= 900 for row in rows)


async def test_on_one_slot_a_row_yields_as_well(
    make_batch: MakeBatch, server: Server, llama: LlamaProcess
) -> None:
    server.parallel = 1
    with Standin("olla", llama, models=[Model("one")]) as olla:
        server.base_url = olla.base_url
        await server.asave()
        batch = await sync_to_async(make_batch)(3, max_tokens=400)
        working = asyncio.create_task(run_until_done(server))
        await until_in_flight(server, 1)
        async with (
            asyncio.timeout(150),
            hold_slot(await refresh_server(server), lane=Lane.INTERACTIVE),
        ):
            assert (await permits.permits_in_flight(server.pk))[Lane.BATCH] == 0
        await working
        await all_accepted(batch)


@pytest.fixture
def swap(llama: LlamaProcess) -> Iterator[Standin]:
    models = [Model("red", slots=2), Model("blue", slots=2)]
    with Standin("llama-swap", llama, models=models) as running:
        yield running


@pytest.fixture
def swap_server(server: Server, swap: Standin) -> Server:
    server.base_url = swap.base_url
    server.set_key(swap.config.api_key)
    server.forget_facts()
    server.save()
    return server


def make_job(alice: User, server: Server, model: str, rows: int) -> Batch:
    return services.create_batch(
        owner=alice,
        server=server,
        model=model,
        handler="tests.echo",
        spec={"max_tokens": 20},
        inputs=[None] * rows,
    )


async def test_one_model_after_the_other(alice: User, swap_server: Server, swap: Standin) -> None:
    jobs = [
        await in_db(make_job, alice, swap_server, model, 8)
        for model in ("red", "blue", "red", "blue")
    ]
    await run_until_done(swap_server)
    for job in jobs:
        await all_accepted(job)
    assert [load["model"] for load in swap.loads] == ["red", "blue"]
    assert max(swap.most.values()) <= 2


async def test_rows_leave_the_model_that_a_person_uses(
    alice: User, swap_server: Server, swap: Standin, settings: Settings
) -> None:
    settings.KEEP_MODEL_SECONDS = 600
    seen = await refresh_server(swap_server)
    async with hold_slot(seen, lane=Lane.INTERACTIVE, model="red"):
        pass
    blue = await in_db(make_job, alice, swap_server, "blue", 2)
    red = await in_db(make_job, alice, swap_server, "red", 2)
    working = asyncio.create_task(run_until_done(swap_server))
    await until_stored(lambda: "red is in use" in Batch.objects.get(pk=blue.pk).reason)
    await until_stored(lambda: Batch.objects.get(pk=red.pk).status == BatchStatus.DONE)
    assert (await Batch.objects.aget(pk=blue.pk)).status in ACTIVE
    assert not await blue.items.filter(status="accepted").aexists()
    settings.KEEP_MODEL_SECONDS = 0
    await working
    await all_accepted(blue)
    assert [load["model"] for load in swap.loads] == ["red", "blue"]


async def test_a_proxy_that_refuses_gets_fewer_requests_and_no_row_pays(
    make_batch: MakeBatch, server: Server, llama: LlamaProcess
) -> None:
    with Standin("olla", llama, models=[Model("one")], refuses=True) as olla:
        server.base_url, server.parallel = olla.base_url, 4
        server.forget_facts()
        await server.asave()
        batch = await sync_to_async(make_batch)(6)
        working = asyncio.create_task(run_until_done(server))

        async def is_limited() -> bool:
            return "request limit is reached" in (await occupancy(server)).limit_reason

        await until(is_limited)
        await in_db(lambda: olla.change(refuses=False))
        await working
        rows = await all_accepted(batch)
        assert {row.attempts for row in rows} == {1}
