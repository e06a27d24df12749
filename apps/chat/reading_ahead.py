"""Has the server read a conversation's prompt while its person still reads or types.

Opening a conversation, and writing, tell what the next prompt begins with. On a slot that nobody
needs the server reads that beforehand, and the first token of the answer then comes as from a warm
cache. Whatever else wants the slot gets it at once (`Lane.SPARE`); only the question itself waits
for the reading, because it needs the same tokens.
"""

import asyncio
import contextvars
import logging
from dataclasses import replace
from weakref import WeakKeyDictionary

from django.conf import settings
from redis.exceptions import RedisError

from apps.chat import prompting
from apps.chat.models import Conversation
from apps.core.db import in_db
from apps.core.threads import serving_loop
from apps.llm import services as llm
from apps.llm import slots
from apps.llm.errors import LLMError
from apps.llm.slots import Lane, NoSlot, SlotTaken, permit

logger = logging.getLogger(__name__)

# A shorter prompt is read in a moment.
WORTH_TOKENS = 200
# A slot may become idle while its person types.
ATTEMPTS = 10
ASK_AGAIN_SECONDS = 0.5
# Longer than any prompt should take; the question then goes by itself.
JOIN_SECONDS = 300.0


class _Reader:
    """What one event loop reads ahead: one request a conversation at a time."""

    def __init__(self) -> None:
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._drafts: dict[int, str] = {}
        self._next: dict[int, str] = {}

    def read(self, conversation: Conversation, draft: str) -> None:
        pk = conversation.pk
        if pk in self._tasks:  # what is being read is the beginning of this
            self._next[pk] = draft
            return
        self._drafts[pk] = draft
        task = asyncio.create_task(_read(conversation, draft), context=contextvars.Context())
        self._tasks[pk] = task
        task.add_done_callback(lambda _: self._done(conversation))

    def _done(self, conversation: Conversation) -> None:
        self._tasks.pop(conversation.pk, None)
        draft = self._next.pop(conversation.pk, None)
        if draft is not None:
            self.read(conversation, draft)

    async def join(self, conversation: int, question: str) -> None:
        self._next.pop(conversation, None)
        task = self._tasks.get(conversation)
        if task is None:
            return
        if not question.startswith(self._drafts[conversation].rstrip()):
            task.cancel()
        await asyncio.wait([task], timeout=JOIN_SECONDS)


async def _read(conversation: Conversation, draft: str) -> None:
    try:
        ask = await in_db(prompting.for_next, conversation, draft)
        server = await llm.look_at(ask.server)
        prepared = prompting.prepare(ask, server)
        if prepared.prompt_tokens < WORTH_TOKENS:
            return
        await slots.announce(server, conversation.owner_id)
        for _ in range(ATTEMPTS):
            if await _on_an_idle_slot(ask, prepared):
                return
            await asyncio.sleep(ASK_AGAIN_SECONDS)
    except (LLMError, llm.NoServer, SlotTaken, RedisError) as error:
        logger.debug("Conversation %s is not read ahead: %r", conversation.pk, error)


async def _on_an_idle_slot(ask: prompting.Ask, prepared: prompting.Prepared) -> bool:
    """False where no slot is idle.

    Raises:
        SlotTaken: something else needed it. What was read stays in the server's cache.
    """
    target = prepared.target
    request = replace(prepared.request, max_tokens=1)  # llama-server reads nothing for none
    try:
        async with permit(
            target.server,
            lane=Lane.SPARE,
            model=target.model,
            tokens=prepared.prompt_tokens + 1,
            label="Reading ahead",
            owner=ask.person,
        ):
            await target.client.complete(request)
    except NoSlot:
        return False
    return True


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _Reader] = WeakKeyDictionary()


def _reader() -> _Reader:
    return _by_loop.setdefault(asyncio.get_running_loop(), _Reader())


def begin(conversation: Conversation, draft: str) -> None:
    """Has the prompt read that would be sent if `draft` were the question. Returns at once.

    Synchronous, to be called while a request is served; it does nothing where that is not possible
    or the setting says no.
    """
    loop = serving_loop()
    if settings.READ_AHEAD and loop is not None:
        loop.call_soon_threadsafe(lambda: _reader().read(conversation, draft))


async def join(conversation: int, question: str) -> None:
    """Waits for what is being read for a conversation, because the question needs the same.

    If the question does not begin with what is being read, that is ended instead.
    """
    await _reader().join(conversation, question)
