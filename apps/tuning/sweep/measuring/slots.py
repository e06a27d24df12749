"""The slots of a sweep: all idle ones that it needs, and none while others use the server."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from apps.llm.permits import Lane, NoSlot, Occupancy, Permit, SlotTaken, read_occupancy
from apps.servers.services import Target, hold_slot, slot_terms

LABEL = "Sweep"
LOOK_SECONDS = 0.25

T = TypeVar("T")
Work = Callable[[Permit], Awaitable[T]]


class InUse(Exception):
    """Others began to use the server, so what was being measured says nothing."""


@dataclass(frozen=True, slots=True)
class IdleSlots:
    """The slots that one sweep may use. `owner`: whose work it is, who may see it."""

    target: Target
    owner: int | None = None

    async def run(
        self,
        works: Sequence[Work[T]],
        tokens: int,
        until: Callable[[], Awaitable[None]] | None = None,
    ) -> list[T]:
        """Run each in a slot of its own, all at the same time.

        Args:
            tokens: the most that each may come to, prompt and answer.
            until: after this the works are cancelled; nothing is returned then.

        Raises:
            InUse: somebody else asked the server meanwhile. All requests are closed then.
            LLMError: an answer is not complete.
        """
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._watch(len(works)))
                tasks = [group.create_task(self._hold(work, tokens)) for work in works]
                if until is None:
                    found = list(await asyncio.gather(*tasks))
                else:
                    await until()
                    found = []
                for task in (watch, *tasks):
                    task.cancel()
        except BaseExceptionGroup as errors:
            if errors.subgroup((NoSlot, SlotTaken, InUse)):
                raise InUse from None
            raise _first(errors) from None
        return found

    async def wait_until_idle(self, on_wait: Callable[[], Awaitable[None]]) -> None:
        """Wait until nobody uses the server; `on_wait` is called once if that is not so now."""
        if await self._is_idle(0):
            return
        await on_wait()
        while not await self._is_idle(0):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)

    async def _hold(self, work: Work[T], tokens: int) -> T:
        target = self.target
        async with hold_slot(
            target.server,
            lane=Lane.IDLE,
            model=target.model,
            tokens=tokens,
            label=LABEL,
            owner=self.owner,
        ) as held:
            return await work(held)

    async def _watch(self, width: int) -> None:
        while await self._is_idle(width):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
        raise InUse

    async def _is_idle(self, width: int) -> bool:
        """True if at most `width` permits are held, all of them by sweeps."""
        terms = slot_terms(self.target.server, self.target.model)
        return is_idle(await read_occupancy(terms), width)


def is_idle(occupancy: Occupancy, width: int) -> bool:
    """True if nobody uses a server but a sweep with so many sequences."""
    return (
        not occupancy.people
        and not occupancy.waiting
        and occupancy.limit is None
        and len(occupancy.held) <= width
        and all(one.lane == Lane.IDLE and one.label == LABEL for one in occupancy.held)
    )


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
