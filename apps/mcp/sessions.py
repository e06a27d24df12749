"""Connections that stay open for the next call of the same person.

A server may keep something between calls (a page it has opened, a folder it is in), which is
nobody else's: each person has a connection of his own. It ends when it was not used for a while, or
when a call was given up: who knows what the server is still busy with.

The library wants a connection entered and left by one task, so each has a task that keeps it.
"""

import asyncio
import contextvars
import logging
from typing import Any
from weakref import WeakKeyDictionary

from apps.mcp import connection as mcp_connection
from apps.mcp.connection import Away, Connection
from apps.mcp.models import Target

logger = logging.getLogger(__name__)

IDLE_SECONDS = 120.0
MOST = 64
"""Open at a time, in one process."""
MOST_OF_ONE = 8
"""Of one person: others find some, too."""

Key = tuple[Target, int]


class CallRefused(Exception):
    """The server is there and says no. The message is what it says."""


async def call(target: Target, person: int, tool: str, arguments: dict[str, Any]) -> Any:
    """The result of a tool, as the library gives it.

    Raises:
        Away: the server cannot be reached, or broke off.
        CallRefused: it does not know the tool, or did not take the arguments.
    """
    session = await _take((target, person))
    session.users += 1
    try:
        connection = await asyncio.shield(session.connection)
        return await connection.call_tool(tool, arguments)
    except Away:
        raise
    except asyncio.CancelledError:
        session.close()
        raise
    except Exception as error:
        said = mcp_connection.failed(error)
        if said is not None:
            raise CallRefused(said) from error
        session.close()
        raise Away("The connection was lost during a call.") from error
    finally:
        session.users -= 1
        session.touch()


async def close_all() -> None:
    """Ends the connections of this event loop, and waits until they have ended."""
    sessions = list(_pool().values())
    for session in sessions:
        session.close()
    if sessions:
        await asyncio.wait([session.task for session in sessions])


class _Session:
    def __init__(self, key: Key) -> None:
        loop = asyncio.get_running_loop()
        self.connection: asyncio.Future[Connection] = loop.create_future()
        # Whoever waited for it may have been cancelled: then nobody asks for its exception.
        self.connection.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.users = 0
        self.used = loop.time()
        self.is_closing = False
        self._changed = asyncio.Event()
        self._key = key
        # A context of its own: it may be begun by a request, and outlives it.
        self.task = loop.create_task(self._keep(), context=contextvars.Context())

    def touch(self) -> None:
        self.used = asyncio.get_running_loop().time()
        self._changed.set()

    def close(self) -> None:
        """No new call gets it; it ends by itself."""
        self.is_closing = True
        self._changed.set()
        if _pool().get(self._key) is self:
            del _pool()[self._key]
        if not self.connection.done():
            self.task.cancel()

    async def _keep(self) -> None:
        try:
            async with mcp_connection.connect(self._key[0]) as connection:
                self.connection.set_result(connection)
                await self._until_unused()
        except Away as error:
            if self.connection.done():
                logger.info("A tool server ended its connection: %s", error)
            else:
                self.connection.set_exception(error)
        finally:
            self.is_closing = True
            if not self.connection.done():
                self.connection.set_exception(
                    Away("The connection was closed before it was ready.")
                )
            if _pool().get(self._key) is self:
                del _pool()[self._key]

    async def _until_unused(self) -> None:
        loop = asyncio.get_running_loop()
        while not self.is_closing:
            left = IDLE_SECONDS if self.users else self.used + IDLE_SECONDS - loop.time()
            if left <= 0:
                return
            self._changed.clear()
            try:
                async with asyncio.timeout(left):
                    await self._changed.wait()
            except TimeoutError:
                continue


_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Key, _Session]] = WeakKeyDictionary()


def _pool() -> dict[Key, _Session]:
    return _pools.setdefault(asyncio.get_running_loop(), {})


async def _take(key: Key) -> _Session:
    pool = _pool()
    if key not in pool:
        own = [session for (_, person), session in pool.items() if person == key[1]]
        for held, most in ((own, MOST_OF_ONE), (list(pool.values()), MOST)):
            if len(held) < most:
                continue
            idle = [session for session in held if not session.users]
            if not idle:
                raise Away(f"{most} connections to tool servers are in use. Try again later.")
            min(idle, key=lambda session: session.used).close()
            break
        pool[key] = _Session(key)
    return pool[key]
