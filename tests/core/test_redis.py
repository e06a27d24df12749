"""A task that is cancelled while it talks to Redis ends."""

import asyncio

import pytest

from apps.core.redis import async_redis, close_async_redis


@pytest.mark.parametrize("steps", range(6))
async def test_a_cancellation_is_never_swallowed(steps: int) -> None:
    """Whichever step of a command it meets (asyncio.wait_for in Python 3.11 loses some)."""

    async def work() -> None:
        await async_redis().set("key", 1)
        await asyncio.sleep(60)

    await async_redis().ping()
    for _ in range(5):
        task = asyncio.create_task(work())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        _, left = await asyncio.wait([task], timeout=60)
        assert not left
    await close_async_redis()
