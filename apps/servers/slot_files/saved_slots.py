"""Saves a slot into a file, restores it, and checks by the next request that it was restored.

The caller holds a permit. Only slots that the server reports as idle are touched: an action on a
busy one would wait, and then take away what a person had there.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from apps.llm import errors
from apps.llm.client import ChatRequest, Completion
from apps.llm.events import Usage
from apps.llm.slot_files import SlotFiles
from apps.runtime.async_db import in_db
from apps.servers.facts.slot_status import SlotStatus
from apps.servers.kinds import llama_swap
from apps.servers.models import Kind, SlotFile
from apps.servers.slot_files import store
from apps.servers.slots.read_slots import read_slots
from apps.servers.targets import Target

# A shorter beginning is computed in a moment.
MIN_TOKENS = 200
# Of a restored file's tokens, in the cache of the next request. The rest is the end of the request
# that was saved: its question and the start of an answer.
MIN_CACHED = 0.9
NOT_CACHED = "The next request found nothing of it in the cache."


@dataclass(frozen=True)
class Restored:
    """A file in a slot, which the next request has yet to prove."""

    file: SlotFile
    slot: int
    seconds: float
    """That restoring took."""


def files_of(target: Target) -> SlotFiles:
    is_swap = target.server.kind == Kind.LLAMA_SWAP
    upstream = llama_swap.upstream(target.model, "") if is_swap else ""
    return SlotFiles(target.client, target.model, upstream)


async def idle_slots(target: Target) -> list[SlotStatus]:
    """Return the idle slots, empty ones first, then the least recently used."""
    slots = await read_slots(target.server, target.model)
    idle = [slot for slot in slots if not slot.busy]
    return sorted(idle, key=lambda slot: (bool(slot.held), slot.task))


async def save_slot(
    target: Target,
    prefix: str,
    usage: Usage,
    *,
    seconds: float | None = None,
    source: str = "",
) -> tuple[SlotFile, int] | None:
    """Save the slot of the request that has just ended; return the file and the slot.

    None where that slot is not found, where the budget leaves no room, or the server saved less.

    Args:
        usage: of the request, whose prompt begins with what `prefix` names.
        seconds: that processing the prompt took, if none of it was cached.

    Raises:
        LLMError: the server failed.
    """
    tokens = usage.prompt_tokens + usage.completion_tokens
    slots = reversed(await idle_slots(target))
    slot = next((s for s in slots if abs((s.held or 0) - tokens) <= 1), None)
    if slot is None:
        return None
    file = await in_db(store.reserve, target, prefix, tokens, source)
    if file is None:
        return None
    try:
        saved = await files_of(target).save(slot.id, file.name)
    except errors.LLMError as error:  # such as a full disk
        await in_db(store.record_failed, target, str(error))
        raise
    if saved.tokens < usage.prompt_tokens - 1:
        return None
    await in_db(store.record_saved, file, saved, seconds)
    return file, slot.id


async def restore(target: Target, file: SlotFile, slot: SlotStatus) -> Restored | None:
    """Restore a file into an idle slot; None where the server refuses it, which is recorded.

    Raises:
        LLMError: the server failed.
    """
    files = files_of(target)
    await _empty_evicted(target, files, slot.id)
    started = time.monotonic()
    try:
        tokens = await files.restore(slot.id, file.name)
    except errors.BadRequest as error:  # the folder was emptied, or a slot holds less than before
        await in_db(store.forget_all, target)
        await in_db(store.record_failed, target, str(error))
        return None
    if tokens != file.tokens:  # written over by something else
        await in_db(store.forget_all, target)
        return None
    return Restored(file, slot.id, time.monotonic() - started)


async def _empty_evicted(target: Target, files: SlotFiles, slot: int) -> None:
    """Write an empty slot over evicted files: no route deletes them. The slot is lost anyway."""
    evicted = await in_db(store.to_empty, target)
    if evicted:
        await files.erase(slot)
    for file in evicted:
        saved = await files.save(slot, file.name)
        await in_db(store.record_emptied, file, saved.size)


async def record_result(
    target: Target, restored: Restored, usage: Usage, *, is_counted: bool = True
) -> bool:
    """Record by the next request's usage whether a restore worked; return that.

    Args:
        is_counted: False where the slot may have held the same before, so that nothing was saved.
    """
    file = restored.file
    if usage.cached_tokens < MIN_CACHED * file.tokens:
        await in_db(store.record_failed, target, NOT_CACHED)
        return False
    saved = (file.seconds or 0.0) - restored.seconds if is_counted else 0.0
    await in_db(store.record_restored, target, file, saved)
    return True


async def ask_once(target: Target, request: ChatRequest, slot: int | None = None) -> Completion:
    """Have the server process a prompt, on a certain slot where one is given.

    Raises:
        LLMError: the server failed.
    """
    params = dict(request.params) | ({} if slot is None else {"id_slot": slot})
    once = replace(request, max_tokens=1, params=params)  # llama-server processes nothing for 0
    return await target.client.complete(once)


def without(slots: Sequence[SlotStatus], taken: Collection[int]) -> list[SlotStatus]:
    return [slot for slot in slots if slot.id not in taken]
