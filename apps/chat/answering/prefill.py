"""Prefill: the server processes a conversation's prompt while its person still reads or types.

Opening a conversation, and typing, show what the next prompt begins with. On an idle slot the
server processes that beforehand, and the first token of the answer then comes as from a warm
cache. Any other request gets the slot at once (`Lane.IDLE`); only the question itself waits for
the prefill, because it needs the same tokens.
"""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Coroutine
from typing import Any
from weakref import WeakKeyDictionary

from django.conf import settings
from redis.exceptions import RedisError

from apps.chat.answering.side_requests import release_slot
from apps.chat.models import Conversation, Preferences
from apps.chat.prompt import build
from apps.chat.prompt.prepare import PreparedRequest, prepare
from apps.llm import permits
from apps.llm.errors import LLMError
from apps.llm.permits import Lane, NoSlot, SlotTaken
from apps.runtime.async_db import in_db
from apps.runtime.threads.thread_pool_middleware import serving_loop
from apps.servers import services as llm
from apps.servers.models import Server
from apps.servers.services import hold_slot

logger = logging.getLogger(__name__)

# A shorter prompt is processed in a moment.
MIN_TOKENS = 200
# A slot may become idle while the person types.
ATTEMPTS = 10
RETRY_SECONDS = 0.5
# A person may go on at once, and the prompt of an answer that was just read costs nothing to keep.
KEEP_AFTER_SECONDS = 2.0
# Longer than any prompt should take; the question is then sent anyway.
JOIN_SECONDS = 300.0


Work = Callable[[], Coroutine[Any, Any, None]]


class PrefillQueue:
    """The prefills and side requests of one event loop: one at a time for each conversation."""

    def __init__(self) -> None:
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self._drafts: dict[int, str] = {}
        self._next: dict[int, tuple[Conversation, str]] = {}

    def prefill(self, conversation: Conversation, draft: str) -> None:
        pk = conversation.pk
        if pk in self.tasks:
            self._next[pk] = conversation, draft
            if pk not in self._drafts:  # a title can wait, a person who types cannot
                self.tasks[pk].cancel()
            return  # what is being processed is the beginning of this
        self._drafts[pk] = draft
        self._start(pk, _prefill(conversation, draft))

    def run_side_task(self, conversation: int, work: Work) -> asyncio.Task[None] | None:
        """Run what needs the same prompt, unless a prefill runs. Any question ends it."""
        if conversation in self.tasks:
            return None
        self._drafts.pop(conversation, None)
        return self._start(conversation, work())

    def _start(self, pk: int, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work, context=contextvars.Context())
        self.tasks[pk] = task
        task.add_done_callback(lambda _: self._done(pk))
        return task

    def _done(self, pk: int) -> None:
        self.tasks.pop(pk, None)
        if (waiting := self._next.pop(pk, None)) is not None:
            self.prefill(*waiting)

    async def join(self, conversation: int, question: str) -> None:
        self._next.pop(conversation, None)
        task = self.tasks.get(conversation)
        if task is None:
            return
        draft = self._drafts.get(conversation)
        if draft is None or not question.startswith(draft.rstrip()):
            task.cancel()
        await asyncio.wait([task], timeout=JOIN_SECONDS)


async def _prefill(conversation: Conversation, draft: str) -> None:
    try:
        prompt = await in_db(build.for_next, conversation, draft)
        server = await llm.refresh_server(prompt.server)
        if not server.continues_messages:  # other servers are not known to keep a prompt cache
            return
        prepared = prepare(prompt, server)
        if prepared.prompt_tokens < MIN_TOKENS:
            return
        await permits.announce_person(server.pk, conversation.owner_id)
        for _ in range(ATTEMPTS):
            if await _try_idle_slot(prompt, prepared):
                return
            await asyncio.sleep(RETRY_SECONDS)
    except (LLMError, llm.NoServer, SlotTaken, RedisError) as error:
        logger.debug("Conversation %s is not prefilled: %r", conversation.pk, error)


async def _try_idle_slot(prompt: build.PromptInput, prepared: PreparedRequest) -> bool:
    """Process the prompt on an idle slot; return False if there is none.

    Raises:
        SlotTaken: something else needed it. What was processed stays in the server's cache.
    """
    target = prepared.target
    try:
        async with (
            release_slot(),
            hold_slot(
                target.server,
                lane=Lane.IDLE,
                model=target.model,
                tokens=prepared.prompt_tokens + 1,
                label="Reading ahead",
                owner=prompt.person,
            ),
        ):
            await llm.process_prompt(target, prepared.request, prompt.conversation)
    except NoSlot:
        return False
    return True


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, PrefillQueue] = WeakKeyDictionary()


def current_queue() -> PrefillQueue:
    """Return the queue of the running event loop."""
    return _by_loop.setdefault(asyncio.get_running_loop(), PrefillQueue())


def is_allowed(person: int, server: Server | None) -> bool:
    """Return True if a person's drafts may be sent to a server. Synchronous.

    Only to llama.cpp, whose slots are known to keep their cache: anywhere else it would be one more
    request, perhaps one that is paid for, and no gain.
    """
    if not settings.READ_AHEAD or server is None or not server.continues_messages:
        return False
    return not Preferences.objects.filter(owner=person, prefill_drafts=False).exists()


def start(conversation: Conversation, draft: str) -> None:
    """Start to process the prompt that would be sent if `draft` were the question.

    Synchronous, returns at once. It does nothing outside a request, or if it is not allowed.
    """
    loop = serving_loop()
    try:
        server, _ = build.chosen_model(conversation)
    except llm.NoServer:
        return
    if loop is not None and is_allowed(conversation.owner_id, server):
        loop.call_soon_threadsafe(lambda: current_queue().prefill(conversation, draft))


async def join(conversation: int, question: str) -> None:
    """Wait for the prefill of a conversation, because the question needs the same tokens.

    If the question does not begin with the prefilled draft, the prefill is ended instead.
    """
    await current_queue().join(conversation, question)


def keep_soon(prompt: build.PromptInput, tokens: int) -> None:
    """After an answer, have a long conversation saved as a slot file, where its server can."""
    target = llm.choose_target(prompt.server, prompt.model, llm.Use.CHAT)
    if settings.READ_AHEAD and tokens >= llm.KEPT_TOKENS and target.saves_slots:
        run_side_task(prompt.conversation, lambda: _keep(prompt.conversation))


async def _keep(pk: int) -> None:
    await asyncio.sleep(KEEP_AFTER_SECONDS)
    conversations = Conversation.objects.select_related("server", "system_prompt", "active_leaf")
    conversation = await in_db(conversations.filter(pk=pk, deleted_at=None).first)
    if conversation is not None:
        await _prefill(conversation, "")


def run_side_task(conversation: int, work: Work) -> asyncio.Task[None] | None:
    """Run a side request of a conversation in this event loop; return None during a prefill.

    The next question ends it.
    """
    return current_queue().run_side_task(conversation, work)
