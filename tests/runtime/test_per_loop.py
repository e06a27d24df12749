"""What belongs to an event loop ends with it."""

import asyncio
import gc
import weakref

import pytest
from asgiref.sync import async_to_sync

from apps.runtime.per_loop import PerLoop
from apps.runtime.redis import async_redis, close_async_redis


class Line:
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()  # as a connection does
        self.closed_in: asyncio.AbstractEventLoop | None = None

    async def close(self) -> None:
        await asyncio.sleep(0)  # as one that takes the loop a turn
        self.closed_in = asyncio.get_running_loop()


def test_each_loop_gets_its_own_object_and_closes_it() -> None:
    lines = PerLoop(Line, Line.close)

    async def use() -> Line:
        assert lines.get() is lines.get()
        return lines.get()

    first, second = asyncio.run(use()), async_to_sync(use)()
    assert first is not second
    assert first.closed_in is first.loop
    assert second.closed_in is second.loop


def test_a_loop_whose_task_failed_closes_it_too() -> None:
    lines, made = PerLoop(Line, Line.close), []

    async def fail() -> None:
        made.append(lines.get())
        raise LookupError

    with pytest.raises(LookupError):
        asyncio.run(fail())
    assert made[0].closed_in is made[0].loop


async def test_closed_early_another_is_made() -> None:
    lines = PerLoop(Line, Line.close)
    await lines.close()  # there is none yet
    first = lines.get()
    await asyncio.gather(lines.close(), lines.close())
    assert first.closed_in is first.loop
    assert lines.get() is not first
    await lines.close()


def test_nothing_keeps_a_loop_that_has_ended() -> None:
    async def ask() -> "weakref.ref[asyncio.AbstractEventLoop]":
        await async_redis().ping()
        return weakref.ref(asyncio.get_running_loop())

    ended = asyncio.run(ask())
    gc.collect()
    assert ended() is None


async def test_redis_can_be_closed_amid_a_loop() -> None:
    first = async_redis()
    await first.ping()
    await close_async_redis()
    assert async_redis() is not first
    await async_redis().ping()
