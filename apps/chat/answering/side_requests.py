"""Requests that nobody waits for, on slots that nobody needs: titles and summaries."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from apps.chat.prompt.prepare import PreparedRequest
from apps.llm.events import Progress, Token, Usage
from apps.llm.permits import Lane
from apps.servers.services import hold_slot

# A server notices that a request was closed when it writes the next token.
RELEASE_SECONDS = 0.15
# A larger cached share means that the server still has the prompt.
MIN_CACHED_SHARE = 0.5


class PromptNotCached(Exception):
    """The server no longer has the prompt in its cache, and processing it again is not worth it."""


async def complete_on_idle_slot(
    person: int, prepared: PreparedRequest, *, label: str, only_if_cached: bool = False
) -> str:
    """Return the model's answer to a request that nobody waits for.

    Args:
        only_if_cached: give up if the server no longer has the prompt in its cache.

    Raises:
        NoSlot: none is idle.
        SlotTaken: something else needed it.
        PromptNotCached: the server would have to process the prompt again.
        LLMError: anything short of a complete answer.
    """
    target = prepared.target
    text = ""
    async with (
        hold_slot(
            target.server,
            lane=Lane.IDLE,
            model=target.model,
            tokens=prepared.tokens,
            label=label,
            owner=person,
        ) as held,
        aclosing(target.client.stream_chat(prepared.request)) as events,
    ):
        async for event in events:
            match event:
                case Progress() if only_if_cached and event.cached < event.total * MIN_CACHED_SHARE:
                    raise PromptNotCached
                case Token():
                    text += event.text
                case Usage():
                    held.record_usage(event)
    return text


@asynccontextmanager
async def release_slot() -> AsyncIterator[None]:
    """Give the server time to release the slot of a request that the next question ends.

    That question needs the cache of this very slot. Sent at once, it would get another slot and
    be processed from the start.
    """
    try:
        yield
    except asyncio.CancelledError:
        await asyncio.sleep(RELEASE_SECONDS)
        raise
