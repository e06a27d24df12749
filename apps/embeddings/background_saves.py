"""Saves that nobody waits for, of vectors whose answer is on its way already."""

import asyncio
import contextvars
import logging
from collections.abc import Coroutine
from weakref import WeakKeyDictionary

logger = logging.getLogger(__name__)

_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, set[asyncio.Task[None]]] = (
    WeakKeyDictionary()
)


def start(work: Coroutine[None, None, None]) -> None:
    """Run it in the background. It is lost with the process: only for work that can be redone."""
    loop = asyncio.get_running_loop()
    tasks = _by_loop.setdefault(loop, set())
    # Not in the request's context: its thread belongs to the request, which may be over by then.
    task = loop.create_task(_logged(work), context=contextvars.Context())
    tasks.add(task)
    task.add_done_callback(tasks.discard)


async def wait_until_saved() -> None:
    """Return when no save of this loop is running; to be called before the loop ends."""
    while tasks := _by_loop.get(asyncio.get_running_loop()):
        await asyncio.gather(*tasks)


async def _logged(work: Coroutine[None, None, None]) -> None:
    try:
        await work
    except Exception:
        logger.exception("New vectors were not saved.")
