"""Has several slots begin with the same prompt, which the server processes once.

Each slot of llama-server has its own cache: of a job's first rows, each would process what all of
them begin with. So one slot processes it, or none where a file has it. The others restore it.
"""

import time
from contextlib import AsyncExitStack
from dataclasses import replace

from apps.llm.client import ChatRequest
from apps.llm.permits import Lane, NoSlot, Permit
from apps.runtime.async_db import in_db
from apps.servers.facts.slot_status import SlotStatus
from apps.servers.models import SlotFile
from apps.servers.slot_files import saved_slots, store
from apps.servers.slot_files.prefix import has_pictures, prefixes_of
from apps.servers.slot_files.saved_slots import MIN_TOKENS
from apps.servers.slots.hold_slot import hold_slot
from apps.servers.targets import Target

# Ends in something else than what was saved, so that a request proves what it was restored for.
OTHER_QUESTION = "?"
LABEL = "Shared prompt"


async def warm_slots(target: Target, request: ChatRequest, *, width: int, owner: int) -> int:
    """Have up to `width` slots begin with a request's prompt; return how many were restored.

    Does nothing where the server cannot. Takes only slots that rows may have now.

    Args:
        request: all its messages but the last one are shared.

    Raises:
        LLMError: the server failed.
        SlotTaken, ModelInUse: someone else needed the server.
    """
    if width < 2 or not _is_worth_it(target, request) or await in_db(store.is_off, target):
        return 0
    return await _Warming(target, request, width, owner).run()


def _is_worth_it(target: Target, request: ChatRequest) -> bool:
    shared = sum(len(message["content"]) for message in request.messages[:-1])
    return (
        target.saves_slots
        and target.server.unified(target.model) is not True  # it empties idle slots
        and not has_pictures(request)
        and shared >= MIN_TOKENS  # at least: no tokenizer knows more tokens than bytes
    )


class _Warming:
    def __init__(self, target: Target, request: ChatRequest, width: int, owner: int) -> None:
        self._target = target
        self._request = request
        self._width = width
        self._owner = owner
        self._prefix = prefixes_of(request)[-2]

    async def run(self) -> int:
        async with AsyncExitStack() as permits:
            held = await self._hold_slot(permits)
            file = await in_db(store.find, self._target, [self._prefix])
            taken: set[int] = set()
            if file is None:
                saved = await self._compute(held)
                if saved is None:
                    return 0
                file, slot = saved
                taken.add(slot)
            return await self._restore(permits, file, taken)

    async def _hold_slot(self, permits: AsyncExitStack, *, waits: bool = True) -> Permit:
        return await permits.enter_async_context(
            hold_slot(
                self._target.server,
                lane=Lane.BATCH,
                model=self._target.model,
                label=LABEL,
                owner=self._owner,
                on_wait=None if waits else _leave,
            )
        )

    async def _compute(self, held: Permit) -> tuple[SlotFile, int] | None:
        """Process the prompt on one slot and save it."""
        started = time.monotonic()
        usage = (await saved_slots.ask_once(self._target, self._request)).usage
        elapsed = time.monotonic() - started
        held.record_usage(usage)
        if usage.prompt_tokens < MIN_TOKENS:
            return None
        seconds = None if usage.cached_tokens > usage.prompt_tokens / 10 else elapsed
        return await saved_slots.save_slot(self._target, self._prefix, usage, seconds=seconds)

    async def _restore(self, permits: AsyncExitStack, file: SlotFile, taken: set[int]) -> int:
        """Restore the file into idle slots as long as that works; return in how many."""
        restored = 0
        while len(taken) < self._width:
            if taken:
                try:
                    await self._hold_slot(permits, waits=False)
                except NoSlot:
                    return restored
            idle = saved_slots.without(await saved_slots.idle_slots(self._target), taken)
            if not idle or not await self._restore_one(file, idle[0]):
                return restored
            taken.add(idle[0].id)
            restored += 1
        return restored

    async def _restore_one(self, file: SlotFile, slot: SlotStatus) -> bool:
        restored = await saved_slots.restore(self._target, file, slot)
        if restored is None:
            return False
        *shared, last = self._request.messages
        question = replace(self._request, messages=[*shared, {**last, "content": OTHER_QUESTION}])
        usage = (await saved_slots.ask_once(self._target, question, slot.id)).usage
        held_less = (slot.held or 0) < file.tokens
        return await saved_slots.record_result(self._target, restored, usage, is_counted=held_less)


def _leave() -> None:
    raise NoSlot
