"""Values that belong to one event loop and are closed with it.

Buys: pooled connections without a registry of loops. Otherwise connections would keep their loop
alive, and be lost with their sockets open.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One value per event loop, created at its first use.

    A value is closed with its loop (`asyncio.run` and similar runners close the generators started
    in a loop), or earlier by `close`.
    """

    def __init__(self, make: Callable[[], T], close: Callable[[T], Awaitable[None]]) -> None:
        self._make = make
        self._close = close
        self._values: WeakKeyDictionary[
            asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[None, None]]
        ] = WeakKeyDictionary()

    def get(self) -> T:
        """Return the value of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._values:
            value = self._make()
            lifetime = self._live(loop, value)
            # Runs up to its yield, without waiting: the loop has registered the generator now.
            with suppress(StopIteration):
                lifetime.asend(None).send(None)
            self._values[loop] = value, lifetime
        return self._values[loop][0]

    async def close(self) -> None:
        """Close the value of the running loop, if there is one; the next use creates another."""
        if found := self._values.get(asyncio.get_running_loop()):
            await found[1].aclose()

    async def _live(self, loop: asyncio.AbstractEventLoop, value: T) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._values.pop(loop, None)
            await self._close(value)
