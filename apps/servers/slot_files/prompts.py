"""Prompts of chats: the beginning that a file has is restored, and a long one saved at idle.

A prompt that its server has probably still in a slot is left alone. The caller holds a permit.
"""

import asyncio
import logging
import time
from contextlib import suppress

from django.db import DatabaseError
from redis.exceptions import RedisError

from apps.llm import errors
from apps.llm.client import ChatRequest
from apps.llm.events import Usage
from apps.runtime.async_db import in_db
from apps.runtime.redis import async_redis
from apps.servers.models import SlotFile
from apps.servers.probing.refresh import FRESH_FOR
from apps.servers.slot_files import saved_slots, store
from apps.servers.slot_files.prefix import has_pictures, prefixes_of
from apps.servers.slot_files.saved_slots import MIN_CACHED, Restored
from apps.servers.slots.read_slots import read_slots
from apps.servers.targets import Target

logger = logging.getLogger(__name__)

# A shorter prompt is processed in a moment, and its file would take the place of a longer one.
MIN_TOKENS = 1_000
# A conversation is saved again when it has grown by this.
MIN_GROWTH = 1.25
# The end of a prompt that later ones do not have, as a share of its characters.
MAX_QUESTION = 0.05
# A prompt of which the server was asked this recently is probably in a slot.
WARM_SECONDS = 1_800
# A person waits no longer for a file than for this.
RESTORE_SECONDS = 5.0
TOO_SLOW = f"Restoring took longer than {RESTORE_SECONDS:.0f} s."


def source_of(conversation: int) -> str:
    return f"conversation:{conversation}"


def drop_conversations(conversations: list[int]) -> None:
    """Free the files of deleted conversations. Synchronous."""
    for pk in conversations:
        store.drop_source(source_of(pk))


async def restore_prompt(target: Target, request: ChatRequest) -> Restored | None:
    """Restore the longest beginning of the prompt that a file has, and return it.

    None where there is none, where it is not needed or not possible: never an error.
    """
    if not target.saves_slots or len(request.messages) < 2 or has_pictures(request):
        return None
    try:
        async with asyncio.timeout(RESTORE_SECONDS):
            return await _restore(target, request)
    except TimeoutError:
        with suppress(DatabaseError):
            await in_db(store.record_failed, target, TOO_SLOW)
    except (errors.LLMError, DatabaseError, RedisError) as error:
        logger.info("No slot file is restored at %s: %r", target.server, error)
    return None


async def _restore(target: Target, request: ChatRequest) -> Restored | None:
    file = await in_db(store.find, target, prefixes_of(request))
    if file is None or await in_db(store.is_off, target) or await _is_warm(target, file):
        return None
    slot = next(iter(await saved_slots.idle_slots(target)), None)
    return None if slot is None else await saved_slots.restore(target, file, slot)


async def record_prompt(
    target: Target, request: ChatRequest, usage: Usage, restored: Restored | None, source: str
) -> None:
    """Record what the server has in a slot now, and whether a restore has worked."""
    if not target.saves_slots or has_pictures(request):
        return
    with suppress(DatabaseError, RedisError):
        if restored is not None:
            await saved_slots.record_result(target, restored, usage)
        mark = f"{time.time():.0f} {target.server.facts.process}"
        for name in (source, prefixes_of(request)[0]):
            await async_redis().set(_warm_key(target, name), mark, ex=WARM_SECONDS)


async def _is_warm(target: Target, file: SlotFile) -> bool:
    """True if a slot probably holds what the file has: it was used, and a slot holds so much."""
    mark = await async_redis().get(_warm_key(target, file.source or file.prefix))
    if not mark:
        return False
    marked_at, _, process = (mark if isinstance(mark, str) else mark.decode()).partition(" ")
    # The process is known again some seconds after a restart.
    is_same = process == target.server.facts.process
    if not is_same and time.time() - float(marked_at) > 2 * FRESH_FOR.total_seconds():
        return False
    slots = await read_slots(target.server, target.model)
    return any((slot.held or 0) >= MIN_CACHED * file.tokens for slot in slots)


def _warm_key(target: Target, name: str) -> str:
    return f"slot-files:warm:{target.server.pk}:{store.cache_key_of(target)}:{name}"


async def process_prompt(target: Target, request: ChatRequest, conversation: int) -> None:
    """Process a prompt ahead of its question, from a file where one has its beginning.

    A long one is saved. Its last message may be a question that is still being written.

    Raises:
        LLMError: the server failed.
    """
    source = source_of(conversation)
    restored = await restore_prompt(target, request)
    started = time.monotonic()
    usage = (await saved_slots.ask_once(target, request)).usage
    elapsed = time.monotonic() - started
    await record_prompt(target, request, usage, restored, source)
    if not await _is_worth_saving(target, request, usage):
        return
    # What begins with a system prompt alone is the same for every chat with that preset.
    *shared, prefix = prefixes_of(request)[:-1]
    seconds = None if usage.cached_tokens > usage.prompt_tokens / 10 else elapsed
    await saved_slots.save_slot(
        target, prefix, usage, seconds=seconds, source=source if shared else ""
    )


async def _is_worth_saving(target: Target, request: ChatRequest, usage: Usage) -> bool:
    *before, last = request.messages
    if not target.saves_slots or not before or has_pictures(request):
        return False
    known = sum(len(message["content"]) for message in before)
    if usage.prompt_tokens < MIN_TOKENS or len(last["content"]) > MAX_QUESTION * known:
        return False
    if await in_db(store.is_off, target):
        return False
    file = await in_db(store.find, target, prefixes_of(request)[:-1])
    return file is None or usage.prompt_tokens > MIN_GROWTH * file.tokens
