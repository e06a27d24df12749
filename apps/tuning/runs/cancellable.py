"""Runs work of a durable task until it ends, is cancelled, or another worker has taken it."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from apps.runtime.async_db import in_db
from apps.work.services import HeldTask

CHECK_SECONDS = 1.0

T = TypeVar("T")


async def unless_cancelled(held: HeldTask, work: Coroutine[Any, Any, T]) -> T:
    """Return what the work returns.

    Raises:
        TaskCancelled, LeaseLost: the requests in flight are closed then.
        Exception: whatever the work raises.
    """
    working = asyncio.create_task(work)
    watch = asyncio.create_task(_watch(held))
    try:
        done, _ = await asyncio.wait({working, watch}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (working, watch):
            task.cancel()
        await asyncio.gather(working, watch, return_exceptions=True)
    if watch in done:
        watch.result()
    return working.result()


async def _watch(held: HeldTask) -> None:
    """Return never; raise once the task is cancelled or lost."""
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        await in_db(held.check)
