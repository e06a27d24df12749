"""Has the server read a conversation's prompt while its person still reads or types.

Opening a conversation, and writing, tell what the next prompt begins with. On a slot that nobody
needs the server reads that beforehand, and the first token of the answer then comes as from a warm
cache. Whatever else wants the slot gets it at once (`Lane.IDLE`); only the question itself waits
for the reading, because it needs the same tokens.
"""

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from django.conf import settings
from redis.exceptions import RedisError

from apps.chat.models import Conversation, Preferences
from apps.chat.prompt import build
from apps.llm import permits
from apps.llm.errors import LLMError
from apps.llm.events import Progress, Token, Usage
from apps.llm.permits import Lane, NoSlot, SlotTaken
from apps.runtime.async_db import in_db
from apps.runtime.thread_pool import serving_loop
from apps.servers import services as llm
from apps.servers.models import Server
from apps.servers.services import hold_slot

logger = logging.getLogger(__name__)

# A shorter prompt is read in a moment.
WORTH_TOKENS = 200
# A slot may become idle while its person types.
ATTEMPTS = 10
ASK_AGAIN_SECONDS = 0.5
# Longer than any prompt should take; the question then goes by itself.
JOIN_SECONDS = 300.0
# A server notices that a request was closed when it has the next token to write.
LET_GO_SECONDS = 0.15
# A prompt of which the server has so much is one that it has read.
MOSTLY = 0.5


class NotRead(Exception):
    """The server no longer has the prompt, and reading it again is not worth it."""


Work = Callable[[], Coroutine[Any, Any, None]]


class _Reader:
    """What one event loop asks of a conversation's prompt beside its questions: one at a time."""

    def __init__(self) -> None:
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._drafts: dict[int, str] = {}
        self._next: dict[int, tuple[Conversation, str]] = {}

    def read(self, conversation: Conversation, draft: str) -> None:
        pk = conversation.pk
        if pk in self._tasks:
            self._next[pk] = conversation, draft
            if pk not in self._drafts:  # a title can wait, who types does not
                self._tasks[pk].cancel()
            return  # what is being read is the beginning of this
        self._drafts[pk] = draft
        self._start(pk, _read(conversation, draft))

    def aside(self, conversation: int, work: Work) -> asyncio.Task[None] | None:
        """Runs what needs the same prompt, unless that is being read. Any question ends it."""
        if conversation in self._tasks:
            return None
        self._drafts.pop(conversation, None)
        return self._start(conversation, work())

    def _start(self, pk: int, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work, context=contextvars.Context())
        self._tasks[pk] = task
        task.add_done_callback(lambda _: self._done(pk))
        return task

    def _done(self, pk: int) -> None:
        self._tasks.pop(pk, None)
        if (following := self._next.pop(pk, None)) is not None:
            self.read(*following)

    async def join(self, conversation: int, question: str) -> None:
        self._next.pop(conversation, None)
        task = self._tasks.get(conversation)
        if task is None:
            return
        draft = self._drafts.get(conversation)
        if draft is None or not question.startswith(draft.rstrip()):
            task.cancel()
        await asyncio.wait([task], timeout=JOIN_SECONDS)


async def _read(conversation: Conversation, draft: str) -> None:
    try:
        ask = await in_db(build.for_next, conversation, draft)
        server = await llm.refresh_server(ask.server)
        if (
            not server.continues_messages
        ):  # nothing is known of a cache that would make it worth while
            return
        prepared = build.prepare(ask, server)
        if prepared.prompt_tokens < WORTH_TOKENS:
            return
        await permits.announce_person(server.pk, conversation.owner_id)
        for _ in range(ATTEMPTS):
            if await _on_an_idle_slot(ask, prepared):
                return
            await asyncio.sleep(ASK_AGAIN_SECONDS)
    except (LLMError, llm.NoServer, SlotTaken, RedisError) as error:
        logger.debug("Conversation %s is not read ahead: %r", conversation.pk, error)


async def _on_an_idle_slot(ask: build.Ask, prepared: build.Prepared) -> bool:
    """False where no slot is idle.

    Raises:
        SlotTaken: something else needed it. What was read stays in the server's cache.
    """
    target = prepared.target
    request = replace(prepared.request, max_tokens=1)  # llama-server reads nothing for none
    try:
        async with (
            let_go(),
            hold_slot(
                target.server,
                lane=Lane.IDLE,
                model=target.model,
                tokens=prepared.prompt_tokens + 1,
                label="Reading ahead",
                owner=ask.person,
            ),
        ):
            await target.client.complete(request)
    except NoSlot:
        return False
    return True


async def said_aside(
    ask: build.Ask, prepared: build.Prepared, *, label: str, must_be_read: bool = False
) -> str:
    """What the model says to something nobody waits for, on a slot that nobody needs.

    Args:
        must_be_read: whether it is worth asking only while the server still has the prompt.

    Raises:
        NoSlot: none is idle.
        SlotTaken: something else needed it.
        NotRead: the server would have to read the prompt again.
        LLMError: anything short of a complete answer.
    """
    target = prepared.target
    said = ""
    async with (
        hold_slot(
            target.server,
            lane=Lane.IDLE,
            model=target.model,
            tokens=prepared.tokens,
            label=label,
            owner=ask.person,
        ) as held,
        aclosing(target.client.stream_chat(prepared.request)) as events,
    ):
        async for event in events:
            match event:
                case Progress() if must_be_read and event.cached < event.total * MOSTLY:
                    raise NotRead
                case Token():
                    said += event.text
                case Usage():
                    held.record_usage(event)
    return said


@asynccontextmanager
async def let_go() -> AsyncIterator[None]:
    """Around a request that the conversation's next question may end.

    That question waits for the end of this: what it begins with is in the cache of the very slot
    that the server has to let go of first. Asked at once it would get another slot and be read from
    the start.
    """
    try:
        yield
    except asyncio.CancelledError:
        await asyncio.sleep(LET_GO_SECONDS)
        raise


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _Reader] = WeakKeyDictionary()


def _reader() -> _Reader:
    return _by_loop.setdefault(asyncio.get_running_loop(), _Reader())


def allowed(person: int, server: Server | None) -> bool:
    """Whether what a person is writing may be sent to a server before it is asked. Synchronous.

    Only llama.cpp's, whose slots are known to keep what they have read: anywhere else it would be a
    request more, perhaps one that is paid for, and nothing gained.
    """
    if not settings.READ_AHEAD or server is None or not server.continues_messages:
        return False
    return not Preferences.objects.filter(owner=person, prefill_drafts=False).exists()


def begin(conversation: Conversation, draft: str) -> None:
    """Has the prompt read that would be sent if `draft` were the question. Returns at once.

    Synchronous, to be called while a request is served; it does nothing where that is not possible
    or not allowed.
    """
    loop = serving_loop()
    try:
        server, _ = build.chosen(conversation)
    except llm.NoServer:
        return
    if loop is not None and allowed(conversation.owner_id, server):
        loop.call_soon_threadsafe(lambda: _reader().read(conversation, draft))


async def join(conversation: int, question: str) -> None:
    """Waits for what is being read for a conversation, because the question needs the same.

    If the question does not begin with what is being read, that is ended instead.
    """
    await _reader().join(conversation, question)


def aside(conversation: int, work: Work) -> asyncio.Task[None] | None:
    """Runs what asks the model with a conversation's prompt for the page's own sake.

    From an event loop. The next question ends it; while the prompt is being read it does not
    begin, and there is no task.
    """
    return _reader().aside(conversation, work)
