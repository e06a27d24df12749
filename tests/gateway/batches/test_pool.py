"""A batch on all servers of its model: one that is killed leaves its requests to the others."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User

from apps.batch import pump_pool
from apps.batch.models import Batch, BatchStatus, Item
from apps.batch.pump import state as pump_state
from apps.batch.scheduler import circuit_breaker
from apps.core.models import ApiKey
from apps.gateway.models import FileBatch
from apps.gateway.pools.look_ups import forget_servers
from apps.llm.client import close_clients
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server
from apps.servers.services import refresh_server
from tests.faults.boxes import Box, MakeBox, running_boxes, working
from tests.faults.model_server import MODEL, answer_of
from tests.gateway.batches.steps import check, line, start
from tests.waiting import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_counters")]

ROWS = 200


@pytest.fixture(autouse=True)
async def _quick(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr(pump_pool, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(pump_state, "WATCH_SECONDS", 0.1)
    monkeypatch.setattr(circuit_breaker, "PAUSE_SECONDS", (0.05, 0.1))
    yield
    await close_clients()
    await close_async_redis()


@pytest.fixture
def make_box(tmp_path: Path, transactional_db: None) -> Iterator[MakeBox]:
    with running_boxes(tmp_path) as make:
        yield make


@pytest.fixture
def boxes(make_box: MakeBox) -> list[Box]:
    found = [make_box("Big box"), make_box("Small")]
    for box in found:
        _learn(box)
    forget_servers()
    return found


@async_to_sync
async def _learn(box: Box) -> None:
    await refresh_server(box.server)
    await close_clients()
    await close_async_redis()


@pytest.fixture
def key(alice: User) -> ApiKey:
    return ApiKey.issue(user=alice, name="laptop")[0]


def begin(key: ApiKey, rows: int = 1, model: str = MODEL) -> FileBatch:
    content = (line(str(number), model=model, seed=number) for number in range(rows))
    return check(start(key, b"".join(content)))


def rows_of(batch: FileBatch, box: Box) -> int:
    return Item.objects.filter(batch=batch.job, status="accepted", server=box.server.pk).count()


async def test_a_server_is_killed_in_the_middle(boxes: list[Box], key: ApiKey) -> None:
    batch = await in_db(begin, key, ROWS)
    job = Batch.objects.filter(pk=batch.job_id, status=BatchStatus.DONE)
    big, small = boxes
    async with working():
        await until(lambda: in_db(lambda: rows_of(batch, big) > 4 and rows_of(batch, small) > 4))
        small.process.kill()
        done = await in_db(rows_of, batch, big)
        await until(lambda: in_db(lambda: rows_of(batch, big) > done + 4))
        await sync_to_async(small.start)()
        await until(job.aexists)
    rows = [row async for row in Item.objects.filter(batch=batch.job).order_by("index")]
    assert [row.status for row in rows] == ["accepted"] * ROWS
    for row in rows:
        answer = json.loads(row.raw)
        assert answer["choices"][0]["message"]["content"].strip() == answer_of(row.index)


def test_only_a_model_that_is_one_for_the_key_spreads(boxes: list[Box], key: ApiKey) -> None:
    assert begin(key).job.all_servers  # type: ignore[union-attr]
    named = begin(key, model=f"Small/{MODEL}").job
    assert named is not None
    assert (named.all_servers, named.server) == (False, Server.objects.get(name="Small"))
    ApiKey.objects.update(allowed_models=[f"Small/{MODEL}"])
    bound = begin(key).job
    assert bound is not None
    assert (bound.all_servers, bound.server) == (False, Server.objects.get(name="Small"))
    ApiKey.objects.update(allowed_models=[MODEL])
    assert begin(key).job.all_servers  # type: ignore[union-attr]
