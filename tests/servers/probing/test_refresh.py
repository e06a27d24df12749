"""How fresh facts are kept, and that nobody asks more often than needed."""

import asyncio
import json
import os
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from redis import Redis
from redis import asyncio as aioredis

from apps.llm import errors
from apps.runtime.async_db import in_db
from apps.runtime.redis import async_redis, sync_redis
from apps.servers import liveness
from apps.servers.facts.server_facts import ServerFacts
from apps.servers.health import aread_health, read_health
from apps.servers.liveness import read_liveness, record_stall
from apps.servers.models import Kind, Server, State
from apps.servers.observations import record_answer, record_error, record_held_tokens
from apps.servers.probing import discovery, refresh, refresh_lock
from apps.servers.probing.refresh import refresh_server
from tests.batch.pump.test_kill import database_url
from tests.llama_process import LlamaProcess, free_port
from tests.waiting import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("loop_closed")]

NOW = timedelta(0)


class Pretended:
    """Stands where discovery stands, and counts."""

    def __init__(self) -> None:
        self.looks = 0
        self.facts = ServerFacts(State.READY, Kind.LLAMA_SERVER, slots=4)
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def __call__(self, client: object, known: object = None) -> ServerFacts:
        self.looks += 1
        await self.may_end.wait()
        return self.facts


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> Pretended:
    found = Pretended()
    monkeypatch.setattr(discovery, "probe", found)
    return found


@pytest.fixture
def away(db: None) -> Server:
    return Server.objects.create(name="Away", base_url=f"http://127.0.0.1:{free_port()}/v1")


async def again(server: Server) -> Server:
    """As another process sees it."""
    return await Server.objects.aget(pk=server.pk)


async def test_refresh_saves_state_kind_and_slots(server: Server) -> None:
    found = await refresh_server(server)
    assert found is server
    assert (found.state, found.kind, found.slots) == (State.READY, Kind.LLAMA_SERVER, 4)
    kept = await again(server)
    assert (kept.state, kept.stored_facts, kept.checked_at) == (
        found.state,
        found.stored_facts,
        found.checked_at,
    )
    assert kept.state_since is not None


async def test_fresh_facts_cost_nothing(
    server: Server, pretended: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    await refresh_server(server)
    monkeypatch.setattr(refresh, "in_db", None)  # neither the database
    monkeypatch.setattr(refresh_lock, "sync_redis", None)  # nor Redis
    for _ in range(100):
        await refresh_server(server)
    assert pretended.looks == 1


async def test_old_facts_are_asked_for_again(server: Server, pretended: Pretended) -> None:
    await refresh_server(server)
    assert server.checked_at is not None
    server.checked_at -= timedelta(seconds=16)
    await in_db(server.save)
    await refresh_server(server, max_age=timedelta(minutes=1))
    assert pretended.looks == 1
    await refresh_server(server)
    assert pretended.looks == 2


async def test_max_age_zero_probes_now(server: Server, pretended: Pretended) -> None:
    await refresh_server(server)
    await refresh_server(server, max_age=NOW)
    assert pretended.looks == 2


async def test_concurrent_refreshes_share_one_probe(server: Server, pretended: Pretended) -> None:
    pretended.may_end.clear()
    askers = [await again(server) for _ in range(10)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(refresh_server(one)) for one in askers]
        await until(lambda: pretended.looks)
        pretended.may_end.set()
    found = [task.result() for task in tasks]
    assert pretended.looks == 1
    assert {one.state for one in found} == {State.READY}


async def test_refresh_with_known_facts_does_not_wait_for_a_running_probe(
    server: Server, pretended: Pretended
) -> None:
    await refresh_server(server)
    await Server.objects.aupdate(checked_at=timezone.now() - timedelta(seconds=20))
    pretended.may_end.clear()
    first, second = await again(server), await again(server)
    looker = asyncio.create_task(refresh_server(first))
    await until(lambda: pretended.looks == 2)
    async with asyncio.timeout(150):
        assert (await refresh_server(second)).state == State.READY
    assert pretended.looks == 2
    looker.cancel()
    await asyncio.wait({looker})


class CountsRequests:
    """Answers nothing but the list of models, slowly, and counts how often it refreshed."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.requests.append(head.split(" ")[1])
        await asyncio.sleep(0.3)  # so long that the other process asks meanwhile
        body = json.dumps({"data": [{"id": "m"}]} if "/models" in head else {}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n")
        writer.write(b"content-length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        async with await asyncio.start_server(self, "127.0.0.1", 0) as server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def test_processes_share_one_probe() -> None:
    counting = CountsRequests()
    async with counting.listening() as base_url:
        server = await Server.objects.acreate(name="s", base_url=base_url)
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "workbench.settings",
            "DATABASE_URL": database_url(),
        }
        others = [
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.servers.probing.refresh_process", str(server.pk)),
                env=environment,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            for _ in range(2)
        ]
        async with asyncio.timeout(200):
            for other in others:
                assert other.stdout is not None
                assert await other.stdout.readline() == b"ready\n"
            for other in others:
                assert other.stdin is not None
                other.stdin.write(b"go\n")
            assert [await other.wait() for other in others] == [0, 0]
    assert counting.requests.count("/v1/models") == 1


class TestFailing:
    async def test_unreachable_is_asked_ever_more_rarely(
        self, away: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(random, "uniform", lambda low, high: high)
        pauses = []
        for _ in range(7):
            await refresh_server(away, max_age=NOW)
            assert away.next_check_at is not None
            assert away.checked_at is not None
            pauses.append((away.next_check_at - away.checked_at).total_seconds())
        assert pauses == [1, 2, 4, 8, 16, 30, 30]
        assert away.failed_checks == 7
        assert "Check that it is running" in away.facts.error

    async def test_the_pause_is_jittered(self, away: Server) -> None:
        pauses = set()
        for _ in range(5):
            away.failed_checks, away.state = 4, State.UNREACHABLE
            pause = refresh.pause_before_probe(away)
            assert pause is not None
            assert timedelta(seconds=4) <= pause <= timedelta(seconds=8)
            pauses.add(pause)
        assert len(pauses) > 1

    async def test_nobody_asks_before_the_time_has_come(self, pretended: Pretended) -> None:
        pretended.facts = ServerFacts(State.UNREACHABLE, error="Nobody answers.")
        server = await Server.objects.acreate(name="s", base_url="http://127.0.0.1:1/v1")
        for _ in range(5):
            await refresh_server(await again(server))
        assert pretended.looks == 1

    async def test_server_that_is_back_keeps_its_known_facts(self, pretended: Pretended) -> None:
        server = await Server.objects.acreate(name="s", base_url="http://127.0.0.1:1/v1")
        await refresh_server(server)
        pretended.facts = ServerFacts(State.UNREACHABLE, error="Nobody answers.")
        await refresh_server(server, max_age=NOW)
        assert (server.state, server.slots) == (State.UNREACHABLE, 4)
        since = server.state_since
        await refresh_server(server, max_age=NOW)
        assert server.state_since == since
        pretended.facts = ServerFacts(State.READY, Kind.LLAMA_SERVER, slots=4)
        await refresh_server(server, max_age=NOW)
        assert (server.state, server.failed_checks, server.next_check_at) == (State.READY, 0, None)
        assert server.facts.error == ""

    async def test_loading_is_asked_about_soon(self, pretended: Pretended) -> None:
        pretended.facts = ServerFacts(State.LOADING, Kind.LLAMA_SERVER, error="It is loading.")
        server = await Server.objects.acreate(name="s", base_url="http://127.0.0.1:1/v1")
        await refresh_server(server)
        assert server.next_check_at is not None
        assert server.checked_at is not None
        assert 1 <= (server.next_check_at - server.checked_at).total_seconds() <= 2

    async def test_a_server_that_says_nothing_is_given_up(
        self, pretended: Pretended, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(refresh, "PROBE_SECONDS", 0.05)
        pretended.may_end.clear()
        server = await Server.objects.acreate(name="s", base_url="http://127.0.0.1:1/v1")
        await refresh_server(server)
        assert server.state == State.UNREACHABLE
        assert "stuck" in server.facts.error

    async def test_a_server_that_was_removed(self, server: Server, pretended: Pretended) -> None:
        await Server.objects.all().adelete()
        await refresh_server(server)
        assert pretended.looks == 0

    async def test_one_whose_address_was_changed_meanwhile_is_not_mixed_up(
        self, server: Server, pretended: Pretended
    ) -> None:
        pretended.may_end.clear()
        looker = asyncio.create_task(refresh_server(await again(server)))
        await until(lambda: pretended.looks)
        await Server.objects.aupdate(base_url="http://127.0.0.1:2/v1")
        pretended.may_end.set()
        await looker
        assert (await again(server)).checked_at is None

    async def test_lock_of_a_killed_probe_expires(
        self, server: Server, pretended: Pretended
    ) -> None:
        sync_redis().set(f"llm:look:{server.pk}", "of the dead", px=300)
        async with asyncio.timeout(150):
            assert (await refresh_server(server)).state == State.READY

    async def test_without_redis_every_process_probes(
        self, server: Server, pretended: Pretended, settings: object, broken_redis: None
    ) -> None:
        assert (await refresh_server(server)).state == State.READY
        await record_answer(server)
        await record_stall(server.pk)
        assert (await aread_health([server]))[server.pk].state == State.READY


@pytest.fixture
def broken_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = "unix:///nonexistent/redis.sock"
    monkeypatch.setattr(refresh_lock, "sync_redis", lambda: Redis.from_url(nowhere))
    monkeypatch.setattr(liveness, "sync_redis", lambda: Redis.from_url(nowhere))
    monkeypatch.setattr(liveness, "async_redis", lambda: aioredis.Redis.from_url(nowhere))


class TestLiveness:
    async def test_a_server_without_a_token_is_shown_as_stuck(
        self, server: Server, pretended: Pretended
    ) -> None:
        await refresh_server(server)
        await record_error(server, errors.Stalled("nothing came"))
        found = (await aread_health([server]))[server.pk]
        assert found.state == State.STUCK
        assert found.since is not None
        assert "without giving a token" in found.error
        # Shown, not treated as away: else nobody would send what proves that it works.
        assert (await again(server)).state == State.READY
        await refresh_server(server, max_age=NOW)
        assert (await aread_health([server]))[server.pk].state == State.STUCK

    async def test_a_token_is_proof_of_life(self, server: Server, pretended: Pretended) -> None:
        await refresh_server(server)
        await record_stall(server.pk)
        await record_answer(server)
        found = (await aread_health([server]))[server.pk]
        assert (found.state, found.error) == (State.READY, "")
        assert found.last_token is not None
        assert datetime.now(UTC) - found.last_token < timedelta(seconds=60)

    async def test_since_the_first_time(self, server: Server) -> None:
        await record_stall(server.pk)
        first = read_liveness([server.pk])[server.pk].stuck_since
        await record_stall(server.pk)
        assert read_liveness([server.pk])[server.pk].stuck_since == first

    async def test_a_restart_is_a_new_beginning(self, server: Server, pretended: Pretended) -> None:
        await refresh_server(server)
        await record_stall(server.pk)
        pretended.facts = ServerFacts(State.UNREACHABLE, error="Nobody answers.")
        await refresh_server(server, max_age=NOW)
        pretended.facts = ServerFacts(State.READY, Kind.LLAMA_SERVER)
        await refresh_server(server, max_age=NOW)
        assert (await aread_health([server]))[server.pk].state == State.READY

    async def test_noting_writes_nothing_to_the_database(
        self, server: Server, pretended: Pretended, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await refresh_server(server)
        monkeypatch.setattr(refresh, "in_db", None)
        await record_answer(server)
        await record_stall(server.pk)
        assert await async_redis().exists(f"llm:signs:{server.pk}")

    async def test_a_token_from_a_server_that_was_thought_away(
        self, server: Server, pretended: Pretended
    ) -> None:
        pretended.facts = ServerFacts(State.UNREACHABLE, error="Nobody answers.")
        await refresh_server(server)
        pretended.facts = ServerFacts(State.READY, Kind.LLAMA_SERVER)
        await record_answer(server)
        assert (await refresh_server(await again(server))).state == State.READY

    @pytest.mark.parametrize(
        "error", [errors.Unreachable("x"), errors.Loading("x"), errors.Unauthorized("x")]
    )
    async def test_failed_request_makes_the_next_probe_due(
        self, server: Server, pretended: Pretended, error: errors.LLMError
    ) -> None:
        await refresh_server(server)
        await record_error(server, error)
        await refresh_server(await again(server))
        assert pretended.looks == 2


def test_many_servers_cost_one_query_and_one_round_trip(
    server: Server, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    servers = [server, *(Server(pk=server.pk + n) for n in range(1, 11))]
    with django_assert_num_queries(0):
        assert len(read_health(servers)) == 11
    assert read_health([]) == {}


class TestUnified:
    async def test_an_overflow_proves_that_the_cache_is_shared(
        self, server: Server, pretended: Pretended
    ) -> None:
        await refresh_server(server)
        await record_error(server, errors.PoolExhausted("all were ended"))
        found = await again(server)
        assert (found.unified(), found.unified_source()) == (
            True,
            "observed: requests exceeded the shared context",
        )
        await refresh_server(found, max_age=NOW)
        assert found.unified() is True

    async def test_slots_that_hold_more_than_one_cache_prove_that_it_is_split(
        self, server: Server, pretended: Pretended
    ) -> None:
        pretended.facts = ServerFacts(State.READY, Kind.LLAMA_SERVER, slots=4, context=4096)
        await refresh_server(server)
        await record_held_tokens(server, 4096)
        assert server.unified() is None
        await record_held_tokens(server, 4097)
        assert (await again(server)).unified() is False
        assert server.pool() is None

    async def test_other_slots_are_another_server(
        self, server: Server, pretended: Pretended
    ) -> None:
        await refresh_server(server)
        await record_error(server, errors.PoolExhausted("all were ended"))
        pretended.facts = ServerFacts(State.READY, Kind.LLAMA_SERVER, slots=8)
        await refresh_server(server, max_age=NOW)
        assert server.unified() is None

    async def test_so_is_another_build(self, server: Server, pretended: Pretended) -> None:
        pretended.facts = ServerFacts(State.READY, Kind.LLAMA_SERVER, build="b1")
        await refresh_server(server)
        await record_error(server, errors.PoolExhausted("all were ended"))
        await refresh_server(server, max_age=NOW)
        assert server.unified() is True
        pretended.facts = ServerFacts(State.READY, Kind.LLAMA_SERVER, build="b2")
        await refresh_server(server, max_age=NOW)
        assert server.unified() is None

    async def test_exhausted_pool_is_recorded_for_its_model_alone(self, server: Server) -> None:
        server.kind = Kind.ROUTER
        await record_error(server, errors.PoolExhausted("all were ended"), "big")
        server.stored_facts["models"] = [{"id": "big"}, {"id": "small"}]
        assert (server.unified("big"), server.unified("small")) == (True, None)


async def test_loading_model_is_probed_soon(
    llama: LlamaProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(state=State.READY, stored_facts={"models": [{"id": "m", "state": "loading"}]})
    assert refresh.pause_before_probe(server) == refresh.MODEL_LOADING
    server.stored_facts = {"models": [{"id": "m", "state": "loaded"}]}
    assert refresh.pause_before_probe(server) is None
