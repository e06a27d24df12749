"""Every request of a program is counted, also one whose answer breaks off or is left."""

import asyncio
from collections import Counter
from datetime import timedelta
from unittest import mock

import httpx2
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from apps.core.models import ApiKey
from apps.gateway.application import Gateway
from apps.gateway.models import Usage
from apps.gateway.usage import counters, store
from apps.gateway.usage.counters import COUNTED, TAKEN
from apps.gateway.usage.record import RequestRecord
from apps.llm.permits import read_totals
from apps.runtime.redis import sync_redis
from apps.servers.models import Server
from apps.servers.services import refresh_server
from tests.gateway.test_slots import LONG, Program

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_counts")]
ASKED = {"messages": [{"role": "user", "content": "Say something."}], "max_tokens": 4, "seed": 1}


@pytest.fixture
def no_counts() -> None:
    sync_redis().delete(COUNTED, TAKEN)


async def stored() -> list[Usage]:
    await sync_to_async(store.store_usage)()
    return [row async for row in Usage.objects.order_by("pk")]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", ASKED),
        ("/v1/chat/completions", {**ASKED, "stream": True}),
        ("/v1/messages", ASKED),
        ("/v1/messages", {**ASKED, "stream": True}),
        ("/v1/responses", {"input": "Say something.", "max_output_tokens": 4, "stream": True}),
        ("/v1/completions", {"prompt": "Once", "max_tokens": 4}),
    ],
)
async def test_tokens_of_each_api_are_counted(
    path: str, body: dict[str, object], program: httpx2.AsyncClient, server: Server
) -> None:
    model = (await refresh_server(server)).model_ids[0]
    for _ in range(2):
        assert (await program.post(path, json={"model": model, **body})).status_code == 200
    [row] = await stored()
    assert (row.model, row.key_name, row.requests, row.failed) == (model, "laptop", 2, 0)
    assert (row.prompt_reports, row.completion_reports, row.waits) == (2, 2, 2)
    assert 2 <= row.completion <= 8
    assert row.cached < row.prompt


async def test_who_leaves_is_counted_without_tokens(
    gateway: Gateway, token: str, server: Server
) -> None:
    program = Program(token, {**LONG, "stream": True}, reads_on=False)
    serving = asyncio.create_task(gateway(program.scope, program.receive, program.send))
    await program.has_answer.wait()
    program.leave()
    await serving
    [row] = await stored()
    assert (row.requests, row.cancelled, row.failed) == (1, 1, 0)
    assert row.completion_reports == 0


async def test_a_refused_request_has_failed(program: httpx2.AsyncClient, server: Server) -> None:
    await program.post("/v1/chat/completions", json={"model": "none", **ASKED})
    [row] = await stored()
    assert (row.model, row.failed, row.prompt_reports, row.waits) == ("", 1, 0, 0)


async def test_routes_without_a_slot_take_no_tokens(
    program: httpx2.AsyncClient, server: Server
) -> None:
    body = {"messages": ASKED["messages"]}
    assert (await program.post("/v1/messages/count_tokens", json=body)).json()["input_tokens"]
    [row] = await stored()
    assert (row.requests, row.prompt, row.prompt_reports, row.waits) == (1, 0, 1, 0)


async def test_usage_outlives_its_key_and_is_kept_for_a_year(
    program: httpx2.AsyncClient, server: Server, alice: User
) -> None:
    old = timezone.localdate() - timedelta(days=400)
    await Usage.objects.acreate(day=old, user=alice, key_id=1, key_name="old", requests=1)
    await program.post("/tokenize", json={"content": "a"})
    await ApiKey.objects.all().adelete()
    assert [row.key_name for row in await stored()] == ["laptop"]


def test_a_batch_is_stored_once(alice: User) -> None:
    key = counters.UsageKey("2026-11-28", alice.pk, 1, "laptop", "m")
    sync_redis().hset(COUNTED, f"requests:{key.to_json()}", 3)
    with mock.patch.object(store, "delete_batch"):  # the process ends here
        store.store_usage()
    store.store_usage()
    store.store_usage()
    assert [row.requests for row in Usage.objects.all()] == [3]
    sync_redis().hset(COUNTED, f"requests:{key.to_json()}", 2)
    store.store_usage()
    assert [row.requests for row in Usage.objects.all()] == [5]


def test_a_person_has_so_many_rows(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_ROWS", 3)
    for number in range(6):
        key = counters.UsageKey("2026-11-28", alice.pk, number + 1, f"key {number}", "m")
        sync_redis().hset(COUNTED, f"requests:{key.to_json()}", 1)
    store.store_usage()
    rows = Usage.objects.all()
    assert rows.count() == 4
    assert rows.get(key_id=0).requests == 3


async def test_redis_holds_so_many_numbers(
    alice: User, monkeypatch: pytest.MonkeyPatch, loop_closed: None
) -> None:
    monkeypatch.setattr(counters, "MAX_NUMBERS", 2)
    for number in range(4):
        key = ApiKey(pk=number + 1, name=f"key {number}", user=alice)
        await counters.count(RequestRecord(model="m"), key)
    assert {row.key_name: row.requests for row in await stored()} == {"key 0": 1, "Other keys": 3}


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_the_end_of_an_answer_is_counted_for_its_server(
    is_streamed: bool, program: httpx2.AsyncClient, server: Server
) -> None:
    model = (await refresh_server(server)).model_ids[0]

    async def ended() -> tuple[int, int]:
        totals = (await sync_to_async(read_totals)([server.pk]))[server.pk]
        counts = totals.get(model, Counter())
        return counts["ended"], counts["only_thought"]

    before = (await ended())[0]
    body = {"model": model, "stream": is_streamed, **ASKED}
    assert (await program.post("/v1/chat/completions", json=body)).status_code == 200
    assert await ended() == (before + 1, 0)
