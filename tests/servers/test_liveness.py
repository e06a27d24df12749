"""Tokens and stalls of servers, recorded in Redis, and the health that follows from them."""

from datetime import UTC, datetime, timedelta

import pytest
from redis import Redis

from apps.servers import liveness
from apps.servers.health import STUCK, read_health
from apps.servers.liveness import (
    Liveness,
    clear_stall,
    read_liveness,
    record_stall,
    record_token,
)
from apps.servers.models import Server, State

pytestmark = pytest.mark.usefixtures("loop_closed")


def is_recent(moment: datetime | None) -> bool:
    return moment is not None and datetime.now(UTC) - moment < timedelta(minutes=1)


async def test_a_token_is_recorded() -> None:
    await record_token(1)
    found = read_liveness([1, 2])
    assert is_recent(found[1].last_token)
    assert found[1].stuck_since is None
    assert found[2] == Liveness()


async def test_a_stall_lasts_until_the_next_token() -> None:
    await record_stall(1)
    since = read_liveness([1])[1].stuck_since
    assert is_recent(since)
    await record_stall(1)
    assert read_liveness([1])[1].stuck_since == since  # the first one counts
    await record_token(1)
    assert read_liveness([1])[1].stuck_since is None


async def test_a_restart_clears_a_stall_and_keeps_the_last_token() -> None:
    await record_token(1)
    await record_stall(1)
    clear_stall(1)
    found = read_liveness([1])[1]
    assert found.stuck_since is None
    assert found.last_token is not None


async def test_nothing_is_asked_for_no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "sync_redis", None)
    assert read_liveness([]) == {}


async def test_without_redis_nothing_is_known_and_nothing_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nowhere = Redis.from_url("redis://127.0.0.1:1/0")
    monkeypatch.setattr(liveness, "sync_redis", lambda: nowhere)
    clear_stall(1)
    assert read_liveness([1]) == {}


async def test_a_ready_server_without_tokens_is_stuck() -> None:
    server = Server(pk=7, name="s", state=State.READY)
    assert read_health([server])[7].state == State.READY
    await record_stall(7)
    health = read_health([server])[7]
    assert (health.state, health.error) == (State.STUCK, STUCK)
    assert is_recent(health.since)


async def test_a_server_that_is_away_is_not_called_stuck() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=8)
    server = Server(
        pk=7,
        name="s",
        state=State.UNREACHABLE,
        next_check_at=soon,
        stored_facts={"error": "Nobody answers."},
    )
    await record_stall(7)
    health = read_health([server])[7]
    assert (health.state, health.error) == (State.UNREACHABLE, "Nobody answers.")
    assert health.next_check_at == soon
