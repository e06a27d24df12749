"""The requests of one process that wait for a slot: whom a free one wakes."""

import asyncio
import heapq
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from apps.llm.permits.permit import Permit

# Should the message that a slot is free be lost, a waiter asks again after this; it is also how
# soon rows notice that nobody is active any more.
POLL_SECONDS = 0.25
# The same for people with many before them; sooner than WAITER_SECONDS, or they would have left.
FAR_POLL_SECONDS = 1.0
# Of the requests that wait, so many ask for each slot that may be free: those that were foremost
# when they asked last. Were all to ask, a queue of hundreds would take all of Redis and of this
# process.
WOKEN = 8


@dataclass(eq=False, slots=True)
class Waiter:
    """A request that waits for a slot."""

    permit: Permit
    rank: int | None = None
    """The requests before it; None: not known, so it asks for every slot."""
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_far(self) -> bool:
        return self.rank is not None and self.rank >= WOKEN

    async def wait(self) -> None:
        """Return when the waiter is woken, or when it should ask all the same."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FAR_POLL_SECONDS if self.is_far else POLL_SECONDS):
                await self.woken.wait()


class Waiters:
    """All requests of one event loop that wait, by server."""

    def __init__(self) -> None:
        self._by_server: dict[int, dict[str, Waiter]] = defaultdict(dict)

    @contextmanager
    def add(self, permit: Permit) -> Iterator[Waiter]:
        """Wake the waiter when a slot may have become free that it would get."""
        waiters = self._by_server[permit.server_id]
        waiter = waiters[permit.name] = Waiter(permit)
        try:
            yield waiter
        finally:
            del waiters[permit.name]

    def find(self, server_id: int, name: str) -> Permit | None:
        """Return the permit of this name, also where it was granted and nobody here knows yet."""
        waiter = self._by_server[server_id].get(name)
        return waiter.permit if waiter else None

    def wake(self, server_id: int) -> None:
        """Have the foremost ask again, and those whose rank is not known."""
        asleep = [one for one in self._by_server[server_id].values() if not one.woken.is_set()]
        ranked = [one for one in asleep if one.rank is not None]
        for waiter in heapq.nsmallest(WOKEN, ranked, key=lambda one: one.rank or 0):
            waiter.woken.set()
        for waiter in asleep:
            if waiter.rank is None:
                waiter.woken.set()

    def wake_one(self, server_id: int, name: str) -> None:
        """Have the waiter of this permit ask again, if it is ours."""
        if waiter := self._by_server[server_id].get(name):
            waiter.woken.set()
