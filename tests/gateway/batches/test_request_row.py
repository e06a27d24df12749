"""Requests of a batch as rows of the pump, at the real llama.cpp."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from apps.batch.errors import RowPostponed
from apps.batch.handlers import JobContext, RowInput, RowOutcome
from apps.batch.models import Batch, Item
from apps.batch.pump.pump import run_pump
from apps.batch.services import cancel_batch, create_batch, update_spec
from apps.core.models import ApiKey
from apps.gateway import program_request
from apps.gateway.batches import request_row
from apps.gateway.batches.batch_spec import HANDLER, BatchSpec
from apps.gateway.batches.request_row import run_row
from apps.gateway.errors import GatewayError
from apps.gateway.models import Usage
from apps.gateway.program_request import ProgramRequest
from apps.gateway.usage import store
from apps.llm.permits import Lane, permits_in_flight
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.services import Target
from tests.waiting import until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("no_counters"),
]
CHAT, EMBEDDINGS = "/v1/chat/completions", "/v1/embeddings"
MESSAGES: Any = [{"role": "user", "content": "Hi"}]
MakeBatch = Callable[..., Batch]


@pytest.fixture
def key(alice: User) -> ApiKey:
    return ApiKey.issue(user=alice, name="laptop")[0]


@pytest.fixture
def make_batch(alice: User, server: Server, key: ApiKey) -> MakeBatch:
    def make(*bodies: Any, endpoint: str = CHAT, seconds: float = 3600) -> Batch:
        return create_batch(
            owner=alice,
            server=server,
            handler=HANDLER,
            spec=BatchSpec(key.pk, endpoint, 100, time.time() + seconds).as_dict(),
            inputs=[{"custom_id": str(n), "body": body} for n, body in enumerate(bodies)],
        )

    return make


async def run(batch: Batch) -> list[Item]:
    assert batch.server_id is not None
    async with asyncio.timeout(200):
        await run_pump(batch.server_id)
    return [row async for row in Item.objects.filter(batch=batch).order_by("index")]


async def test_answers_are_stored_as_they_came_and_counted(make_batch: MakeBatch) -> None:
    body = {"model": "any", "messages": MESSAGES, "max_tokens": 4}
    good, bad = await run(await in_db(make_batch, body, {**body, "messages": 7}))
    answer = json.loads(good.raw)
    assert (good.status, good.output) == ("accepted", {"status_code": 200})
    assert answer["usage"]["completion_tokens"] == good.completion_tokens == 4
    assert (bad.status, bad.code) == ("rejected", "refused")
    assert bad.output["status_code"] == 400
    assert json.loads(bad.raw)["error"]["message"]
    await in_db(store.store_usage)
    usage = await Usage.objects.aget()
    assert (usage.key_name, usage.requests, usage.failed) == ("laptop", 2, 1)
    assert usage.completion == 4


async def test_what_the_server_cannot_do_is_an_error_of_the_row(
    make_batch: MakeBatch,
) -> None:
    batch = await in_db(lambda: make_batch({"model": "any", "input": "Hi"}, endpoint=EMBEDDINGS))
    [row] = await run(batch)
    assert (row.status, row.code) == ("rejected", "refused")
    assert row.output["status_code"] >= 400
    assert json.loads(row.raw)["error"]["message"]


async def test_rows_are_not_sent_after_the_deadline_or_without_a_key(
    make_batch: MakeBatch, key: ApiKey
) -> None:
    body = {"model": "any", "messages": MESSAGES}
    [late] = await run(await in_db(lambda: make_batch(body, seconds=-1)))
    assert (late.status, late.code) == ("rejected", "batch_expired")
    await ApiKey.objects.filter(pk=key.pk).aupdate(revoked=timezone.now())
    [unsent] = await run(await in_db(make_batch, body))
    assert (unsent.status, unsent.code) == ("rejected", "invalid_api_key")


async def test_limits_of_the_key_hold(make_batch: MakeBatch, key: ApiKey, server: Server) -> None:
    body: Any = {"model": "any", "messages": MESSAGES, "max_tokens": 4}
    batch = await in_db(make_batch, body)
    client = Target(server, "").client
    context = JobContext(batch.pk, BatchSpec(key.pk, CHAT, 9, time.time() + 99), "any", client)
    row = RowInput(0, 1, {"custom_id": "a", "body": body})
    await ApiKey.objects.filter(pk=key.pk).aupdate(max_tokens=2)
    refused = await run_row(row, context)
    assert refused.output == {"status_code": 400}
    assert "2 tokens at most" in refused.raw
    await ApiKey.objects.filter(pk=key.pk).aupdate(max_tokens=None, requests_per_minute=1)
    assert (await run_row(row, context)).output == {"status_code": 200}
    with pytest.raises(RowPostponed, match="1 request a minute") as postponed:
        await run_row(row, context)
    assert 0 < postponed.value.wait_s <= 60


async def test_a_postponed_row_waits_without_an_attempt(
    make_batch: MakeBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    postponed: list[int] = []
    read = program_request.read_request

    def refuse_once(*arguments: Any) -> ProgramRequest:
        if not postponed:
            postponed.append(1)
            raise GatewayError(429, "rate_limit_exceeded", "Later.", retry_after=0.01)
        return read(*arguments)

    monkeypatch.setattr("apps.gateway.batches.request_row.read_request", refuse_once)
    [row] = await run(
        await in_db(make_batch, {"model": "any", "messages": MESSAGES, "max_tokens": 1})
    )
    assert (row.status, row.attempts, postponed) == ("accepted", 1, [1])


async def test_rows_of_an_idle_key_have_the_idle_lane(
    make_batch: MakeBatch, key: ApiKey, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes: list[Lane] = []

    async def see_lanes(row: RowInput, context: JobContext[BatchSpec]) -> RowOutcome:
        lanes.extend(lane for lane, held in (await permits_in_flight(server.pk)).items() if held)
        return await run_row(row, context)

    monkeypatch.setattr(request_row, "run_row", see_lanes)
    batch = await in_db(make_batch, {"model": "any", "messages": MESSAGES, "max_tokens": 1})
    await in_db(update_spec, batch, lambda spec: {**spec, "lane": "idle"})
    [row] = await run(batch)
    assert (row.status, lanes) == ("accepted", [Lane.IDLE])


async def test_a_batch_says_which_limit_it_waits_for(
    make_batch: MakeBatch, key: ApiKey, server: Server
) -> None:
    await ApiKey.objects.filter(pk=key.pk).aupdate(requests_per_minute=1)
    body = {"model": "any", "messages": MESSAGES, "max_tokens": 1}
    batch = await in_db(make_batch, body, body)
    pumping = asyncio.create_task(run(batch))
    await until(Batch.objects.filter(pk=batch.pk, reason__contains="request a minute").aexists)
    await in_db(cancel_batch, batch)
    assert sorted(row.status for row in await pumping) == ["accepted", "pending"]
