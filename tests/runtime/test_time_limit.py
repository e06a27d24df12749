"""A time limit: raises in time, and never takes a cancellation for its own."""

import asyncio

import pytest

from apps.runtime.time_limit import time_limit


async def wait_for_ever(began: asyncio.Event, seconds: float) -> None:
    with time_limit(seconds):
        began.set()
        await asyncio.Event().wait()


async def test_what_takes_too_long_raises_timeout_error() -> None:
    with pytest.raises(TimeoutError):
        await wait_for_ever(asyncio.Event(), 0.01)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0  # the task goes on as if nothing had been


async def test_what_is_done_in_time_returns_and_is_not_cancelled_later() -> None:
    ended = asyncio.Event()
    with time_limit(0.01):
        pass
    # Timers of one loop run in their order: the limit's would have come before.
    asyncio.get_running_loop().call_later(0.02, ended.set)
    await ended.wait()


async def test_who_cancels_the_task_is_heard() -> None:
    began = asyncio.Event()
    task = asyncio.create_task(wait_for_ever(began, 60))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_in_the_moment_of_expiry_is_heard() -> None:
    async def cancelled_twice() -> None:
        task = asyncio.current_task()
        assert task is not None
        with time_limit(0):  # both come in the next round of the loop, before the task goes on
            asyncio.get_running_loop().call_soon(task.cancel)
            await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(cancelled_twice())


async def test_an_error_of_the_block_stays() -> None:
    with pytest.raises(ValueError, match="ours"), time_limit(60):
        raise ValueError("ours")


async def test_the_inner_of_two_limits_expires_alone() -> None:
    with time_limit(60):
        with pytest.raises(TimeoutError):
            await wait_for_ever(asyncio.Event(), 0.01)
        await asyncio.sleep(0)  # a cancellation that was left over would come here
