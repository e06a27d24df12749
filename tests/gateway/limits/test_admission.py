"""Limits of keys and people: refused with the reason and a time to wait, over all processes."""

import asyncio
import json
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from apps.core.models import ApiKey, PersonLimits
from apps.gateway.application import Gateway
from apps.gateway.limits import admission
from apps.gateway.limits.admission import Flights, admitted
from apps.gateway.usage.record import RequestRecord
from apps.runtime.redis import async_redis
from apps.servers.models import Server
from tests.gateway.test_slots import LONG, Program

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_counters")]
ASKED = {"messages": [{"role": "user", "content": "Say something."}], "max_tokens": 4, "seed": 1}
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"


async def limit(**limits: int) -> ApiKey:
    key = await ApiKey.objects.select_related("user__program_limits").aget()
    for name, value in limits.items():
        setattr(key, name, value)
    await key.asave()
    return key


async def test_requests_a_minute(program: httpx2.AsyncClient, server: Server) -> None:
    await limit(requests_per_minute=2)
    for _ in range(2):
        assert (await program.post("/tokenize", json={"content": "a"})).status_code == 200
    answer = await program.post(CHAT, json=ASKED)
    assert answer.status_code == 429
    assert 50 <= int(answer.headers["retry-after"]) <= 60
    error = answer.json()["error"]
    assert error["code"] == "rate_limit_exceeded"
    assert error["message"].startswith("The key “laptop” may send 2 requests a minute.")
    of_anthropic = (await program.post(MESSAGES, json=ASKED)).json()
    assert (of_anthropic["type"], of_anthropic["error"]["type"]) == ("error", "rate_limit_error")
    await limit(requests_per_minute=3)
    assert (await program.post("/tokenize", json={"content": "a"})).status_code == 200


async def test_a_minute_ends(alice: User, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key = await limit(requests_per_minute=1)
    redis = async_redis()
    seconds, _ = await redis.time()
    await redis.rpush(f"gateway:times:key:{key.pk}", (seconds - 61) * 1000)
    async with admitted(key, lambda: 0):
        pass
    assert await redis.llen(f"gateway:times:key:{key.pk}") == 1


async def test_tokens_a_day(
    program: httpx2.AsyncClient, server: Server, alice: User, token: str
) -> None:
    await PersonLimits.objects.acreate(user=alice, tokens_per_day=6)
    assert (await program.post(CHAT, json=ASKED)).status_code == 200
    answer = await program.post(CHAT, json=ASKED)
    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= 24 * 3600
    told = answer.json()["error"]["message"]
    assert told.startswith("All your keys together may use 6 tokens a day")
    _, other = await asyncio.to_thread(lambda: ApiKey.issue(user=alice, name="second"))
    program.headers["authorization"] = f"Bearer {other}"
    assert (await program.post(CHAT, json=ASKED)).status_code == 429


async def test_who_leaves_early_pays_for_what_came(
    gateway: Gateway, token: str, server: Server
) -> None:
    key = await limit(tokens_per_day=5)
    program = Program(token, {**LONG, "stream": True}, reads_on=False)
    serving = asyncio.create_task(gateway(program.scope, program.receive, program.send))
    await program.has_answer.wait()
    program.leave()
    await serving
    used = await async_redis().get(f"gateway:tokens:key:{key.pk}:{timezone.localdate()}")
    assert int(used or 0) > len(json.dumps(LONG)) // 5


def test_what_never_reached_a_server_costs_nothing() -> None:
    assert RequestRecord(status=404).charge(4000) == 0
    assert RequestRecord(status=400, is_asked=True).charge(4000) == 0
    assert RequestRecord(is_asked=True).charge(4000) == 1000


@pytest.mark.parametrize("whose", ["key", "person", "everyone"])
async def test_requests_in_flight_are_counted_over_processes(
    whose: str, token: str, alice: User, settings: Settings, program: httpx2.AsyncClient
) -> None:
    if whose == "key":
        await limit(in_flight=1)
    elif whose == "person":
        await PersonLimits.objects.acreate(user=alice, in_flight=1)
    else:
        settings.LIMITS = {**settings.LIMITS, "programs": 1}
    key = await ApiKey.objects.select_related("user__program_limits").aget()
    elsewhere = admitted(key, lambda: 0)  # nothing of it is known in the gateway's own process
    async with elsewhere:
        answer = await program.post(CHAT, json=ASKED)
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
        assert "may have 1 request in flight" in answer.json()["error"]["message"]
    assert (await program.post(CHAT, json={**ASKED, "model": "none"})).status_code == 404


async def test_places_are_renewed_and_lapse_with_their_process(
    token: str, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await limit(in_flight=1)
    place = f"gateway:flight:key:{key.pk}"
    flights = Flights()
    flights.add("one", [place])
    await async_redis().zadd(place, {"one": 1, "of a process that died": 1})
    await flights.renew()
    with pytest.raises(Exception, match="1 request in flight"):
        async with admitted(key, lambda: 0):
            pass
    assert await async_redis().zrange(place, 0, -1) == [b"one"]
    flights.discard("one")
    await async_redis().zadd(place, {"one": 1})
    async with admitted(key, lambda: 0):
        pass


async def test_a_renewal_brings_no_place_back() -> None:
    flights, place = Flights(), "gateway:flight:key:1"
    flights.add("one", [place])
    renewal = asyncio.create_task(flights.renew())
    await asyncio.sleep(0)  # it is on its way
    flights.discard("one")
    await renewal
    assert not await async_redis().exists(place)


async def test_a_request_takes_one_trip_to_redis_before_it_goes_on(
    token: str, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await limit(in_flight=1, requests_per_minute=9, tokens_per_day=9)
    async with admitted(key, lambda: 0):  # the script is known to Redis from now on
        pass
    sent: list[Any] = []
    execute = type(async_redis()).execute_command

    async def recorded(self: Any, *args: Any, **options: Any) -> Any:
        sent.append(args[0])
        return await execute(self, *args, **options)

    monkeypatch.setattr(type(async_redis()), "execute_command", recorded)
    async with admitted(key, lambda: 0):
        assert sent == ["EVALSHA"]


async def test_without_redis_programs_are_told_so(
    program: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> None:
        raise admission.RedisError

    monkeypatch.setattr(admission, "_admit", fails)
    answer = await program.post(CHAT, json=ASKED)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_redis")
