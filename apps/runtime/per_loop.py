"""Things that belong to one event loop, and end with it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One value for each event loop, made at its first use.

    It is closed when its loop is (`asyncio.run` and its like end the generators that were begun in
    a loop), or earlier by who asks for it. Without that, connections would keep their loop alive,
    and be lost with their sockets open.
    """

    def __init__(self, make: Callable[[], T], close: Callable[[T], Awaitable[None]]) -> None:
        self._make = make
        self._close = close
        self._values: WeakKeyDictionary[
            asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[None, None]]
        ] = WeakKeyDictionary()

    def get(self) -> T:
        """The value of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._values:
            value = self._make()
            until_the_end = self._keep(loop, value)
            # As far as its yield, where nothing has to be waited for: the loop knows it now.
            with suppress(StopIteration):
                until_the_end.asend(None).send(None)
            self._values[loop] = value, until_the_end
        return self._values[loop][0]

    async def close(self) -> None:
        """Closes the value of the running loop, if there is one: the next use makes another."""
        if found := self._values.get(asyncio.get_running_loop()):
            await found[1].aclose()

    async def _keep(self, loop: asyncio.AbstractEventLoop, value: T) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._values.pop(loop, None)
            await self._close(value)
