"""A task that is cancelled while it talks to Redis ends, and so does one that Redis forgot."""

import asyncio
from typing import Any

import pytest
from redis.exceptions import RedisError

from apps.runtime import redis
from apps.runtime.redis import async_redis, close_async_redis


@pytest.mark.parametrize("steps", range(6))
async def test_a_cancellation_is_never_swallowed(steps: int) -> None:
    """Whichever step of a command it meets (asyncio.wait_for in Python 3.11 loses some)."""

    async def work() -> None:
        await async_redis().set("key", 1)
        await asyncio.Event().wait()

    await async_redis().ping()
    for _ in range(5):
        task = asyncio.create_task(work())
        for _ in range(steps):
            await asyncio.sleep(0)  # one step of the task
        task.cancel()
        _, left = await asyncio.wait([task], timeout=60)
        assert not left
    await close_async_redis()


async def test_a_redis_that_hangs_is_an_error_and_not_a_wait(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    monkeypatch.setattr(redis, "COMMAND_SECONDS", 0.1)
    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings.REDIS_URL = f"redis://127.0.0.1:{port}/0"
    async with server:
        with pytest.raises(RedisError, match="not answered"):
            await async_redis().get("x")
        with pytest.raises(RedisError, match="not answered"):
            await async_redis().pipeline().get("x").execute()
        await close_async_redis()


async def test_hundreds_who_ask_at_once_wait_for_a_connection() -> None:
    await async_redis().set("x", 1)
    found = await asyncio.gather(*(async_redis().get("x") for _ in range(500)))
    assert found == [b"1"] * 500
    await close_async_redis()
