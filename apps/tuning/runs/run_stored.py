"""Runs the work of a durable task, and stores what it found or why it ended without."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from apps.llm.client import close_clients
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.tuning.errors import SweepError
from apps.tuning.runs.cancellable import unless_cancelled
from apps.tuning.runs.services import CANCELLED, LOST
from apps.work.errors import TaskCancelled
from apps.work.models import TaskState
from apps.work.services import HeldTask

T = TypeVar("T")


async def run_stored(
    held: HeldTask,
    work: Callable[[], Coroutine[Any, Any, T]],
    *,
    store: Callable[[T], None],
    end: Callable[[str], None],
) -> None:
    """Run the work until it ends or is cancelled; at most as often as its task allows.

    Args:
        store: ends the run with what was found. Blocks.
        end: ends the run without results, with the reason. Blocks.
    """
    try:
        if held.is_worn_out:
            raise SweepError(LOST)
        await in_db(store, await unless_cancelled(held, work()))
    except SweepError as error:
        await in_db(end, str(error))
        await in_db(held.end, TaskState.FAILED, str(error))
    except TaskCancelled:
        await in_db(end, CANCELLED)
        raise
    finally:
        await close_clients()
        await close_async_redis()
