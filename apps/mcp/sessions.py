"""Connections that stay open for the next call of the same person.

A server may keep state between calls (an open page, a working folder) that nobody else may see:
each person has a connection of their own. It ends when it is idle for a while, or when a call was
cancelled, because the server may still be busy with that call.

The library requires that one task enters and leaves a connection, so each has a task of its own.
"""

import asyncio
import contextvars
import logging
from typing import Any
from weakref import WeakKeyDictionary

from apps.core.schemas.json_types import JsonObject
from apps.mcp import connection as mcp_connection
from apps.mcp.connection import Connection, ToolServerUnavailable
from apps.mcp.models import Target

logger = logging.getLogger(__name__)

IDLE_SECONDS = 120.0
MAX_SESSIONS = 64
"""Open connections of one process."""
MAX_PER_PERSON = 8
"""Open connections of one person, so that some are left for others."""

Key = tuple[Target, int]


class CallRefused(Exception):
    """The server refused the call. The message is its reason."""


async def call(target: Target, person: int, tool: str, arguments: JsonObject) -> Any:
    """Call a tool and return the library's result object.

    Raises:
        ToolServerUnavailable: the connection failed.
        CallRefused: the server does not know the tool, or rejected the arguments.
    """
    session = await _get_session((target, person))
    session.active_calls += 1
    try:
        connection = await asyncio.shield(session.connection)
        return await connection.call_tool(tool, arguments)
    except ToolServerUnavailable:
        raise
    except asyncio.CancelledError:
        session.close()
        raise
    except Exception as error:
        reason = mcp_connection.refusal_reason(error)
        if reason is not None:
            raise CallRefused(reason) from error
        session.close()
        raise ToolServerUnavailable("The connection was lost during a call.") from error
    finally:
        session.active_calls -= 1
        session.mark_used()


async def close_all() -> None:
    """End the connections of this event loop and wait for their tasks."""
    sessions = list(_pool().values())
    for session in sessions:
        session.close()
    if sessions:
        await asyncio.wait([session.task for session in sessions])


class _Session:
    """One connection, and the task that holds it open."""

    def __init__(self, key: Key) -> None:
        loop = asyncio.get_running_loop()
        self.connection: asyncio.Future[Connection] = loop.create_future()
        # Its waiter may have been cancelled: then nothing else retrieves the exception.
        self.connection.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.active_calls = 0
        self.last_used = loop.time()
        self.is_closing = False
        self._changed = asyncio.Event()
        self._key = key
        # A context of its own: a request may start it, and it outlives the request.
        self.task = loop.create_task(self._hold_open(), context=contextvars.Context())

    def mark_used(self) -> None:
        self.last_used = asyncio.get_running_loop().time()
        self._changed.set()

    def close(self) -> None:
        """Take it out of the pool; its task then ends the connection."""
        self.is_closing = True
        self._changed.set()
        if _pool().get(self._key) is self:
            del _pool()[self._key]
        if not self.connection.done():
            self.task.cancel()

    async def _hold_open(self) -> None:
        try:
            async with mcp_connection.connect(self._key[0]) as connection:
                self.connection.set_result(connection)
                await self._wait_until_idle()
        except ToolServerUnavailable as error:
            if self.connection.done():
                logger.info("A tool server ended its connection: %s", error)
            else:
                self.connection.set_exception(error)
        finally:
            self.is_closing = True
            if not self.connection.done():
                self.connection.set_exception(
                    ToolServerUnavailable("The connection was closed before it was ready.")
                )
            if _pool().get(self._key) is self:
                del _pool()[self._key]

    async def _wait_until_idle(self) -> None:
        loop = asyncio.get_running_loop()
        while not self.is_closing:
            left = (
                IDLE_SECONDS if self.active_calls else self.last_used + IDLE_SECONDS - loop.time()
            )
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


async def _get_session(key: Key) -> _Session:
    pool = _pool()
    if key not in pool:
        own = [session for (_, person), session in pool.items() if person == key[1]]
        for held, limit in ((own, MAX_PER_PERSON), (list(pool.values()), MAX_SESSIONS)):
            if len(held) < limit:
                continue
            idle = [session for session in held if not session.active_calls]
            if not idle:
                raise ToolServerUnavailable(
                    f"{limit} connections to tool servers are in use. Try again later."
                )
            min(idle, key=lambda session: session.last_used).close()
            break
        pool[key] = _Session(key)
    return pool[key]
