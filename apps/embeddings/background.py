"""Work that nobody waits for: what is worth keeping of an answer that is on its way already."""

import asyncio
import contextvars
import logging
from collections.abc import Coroutine
from weakref import WeakKeyDictionary

logger = logging.getLogger(__name__)

_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, set[asyncio.Task[None]]] = (
    WeakKeyDictionary()
)


def soon(work: Coroutine[None, None, None]) -> None:
    """Runs it beside everything else. It is lost with the process: only for what can be redone."""
    loop = asyncio.get_running_loop()
    tasks = _by_loop.setdefault(loop, set())
    # Not in the request's context: its thread belongs to the request, which may be over by then.
    task = loop.create_task(_logged(work), context=contextvars.Context())
    tasks.add(task)
    task.add_done_callback(tasks.discard)


async def settled() -> None:
    """Returns when nothing of this loop is left to do: for whoever ends the loop."""
    while tasks := _by_loop.get(asyncio.get_running_loop()):
        await asyncio.gather(*tasks)


async def _logged(work: Coroutine[None, None, None]) -> None:
    try:
        await work
    except Exception:
        logger.exception("Something was not kept for later.")
