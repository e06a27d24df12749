"""Titles by the model: one more question in the conversation itself, on an idle slot.

The first question is the title at first. After one of the first answers the model is asked for a
better one. That request begins with the prompt that the server has just processed, so only the
question itself is new; and the person's next question ends it at once.
"""

import asyncio
import logging
import re

from django.conf import settings
from redis.exceptions import RedisError

from apps.chat.answering.prefill import run_side_task
from apps.chat.answering.side_requests import (
    PromptNotCached,
    complete_on_idle_slot,
    release_slot,
)
from apps.chat.models import TITLE_LENGTH, Conversation, Message, Role
from apps.chat.prompt.build import PromptInput, side_request
from apps.chat.prompt.prepare import PreparedRequest, prepare
from apps.llm.errors import LLMError
from apps.llm.permits import NoSlot, SlotTaken
from apps.runtime.async_db import in_db
from apps.servers import services as llm

logger = logging.getLogger(__name__)

QUESTION = (
    "Give this conversation a title of three to six words, in its own language. "
    "Reply with the title alone."
)
TITLE_TOKENS = 48
# A person who asks at once must find the slot of their conversation free.
START_AFTER_SECONDS = 3.0
# After this many messages the first question stays the title.
MAX_MESSAGES = 6
ATTEMPTS = 5
RETRY_SECONDS = 1.0

_LABEL = re.compile(r"^(?:title|titel|titre|título)\s*:\s*", re.IGNORECASE)
_MARKUP = re.compile(r"\*\*|__|`")
_AROUND = " \t*_#`\"'“”„«»‘’"


def first_line(text: str) -> str:
    """Return the first line of a question as a title."""
    line = text.strip().splitlines()[0]
    return line if len(line) <= TITLE_LENGTH else f"{line[: TITLE_LENGTH - 1].rstrip()}…"


def parse_title(answer: str) -> str:
    """Return the title in an answer: its first line without decoration, or ""."""
    line = next((line for line in answer.splitlines() if line.strip(_AROUND)), "")
    title = _LABEL.sub("", line.strip(_AROUND)).strip(_AROUND).rstrip(".:")
    title = _MARKUP.sub("", title)
    return title if 0 < len(title) <= TITLE_LENGTH else ""


def is_automatic(conversation: Conversation) -> bool:
    """Return True if the title is still the first question. Synchronous.

    A temporary conversation gets none.
    """
    if conversation.temporary_until is not None:
        return False
    questions = Message.objects.filter(conversation=conversation, parent=None, role=Role.USER)
    texts = questions.values_list("content", flat=True)
    return any(text.strip() and first_line(text) == conversation.title for text in texts)


def may_change(conversation: Conversation) -> bool:
    """Return True if the model may still write a title. Synchronous."""
    if not settings.TITLES:
        return False
    count = conversation.messages.filter(deleted_at=None)[: MAX_MESSAGES + 1].count()
    return count <= MAX_MESSAGES and is_automatic(conversation)


def write_soon(prompt: PromptInput) -> None:
    """Start to write a title after an answer, if the title is still the first question."""
    is_automatic = bool(prompt.opening.strip()) and first_line(prompt.opening) == prompt.title
    if settings.TITLES and len(prompt.messages) < MAX_MESSAGES and is_automatic:
        run_side_task(prompt.conversation, lambda: _write(prompt.conversation))


async def _write(pk: int) -> None:
    try:
        await asyncio.sleep(START_AFTER_SECONDS)
        found = await in_db(_find, pk)
        if found is None:
            return
        old_title, prompt = found
        prepared = prepare(prompt, await llm.refresh_server(prompt.server))
        cut = prompt.counted.cut_before_message if prompt.counted else None
        if prepared.target.is_demo or prepared.cut_before_message != cut:
            return  # another prefix would replace the next question's in the cache
        for _ in range(ATTEMPTS):
            title = await _try_idle_slot(prompt.person, prepared)
            if title is not None:
                await in_db(_save, pk, old_title, title)
                return
            await asyncio.sleep(RETRY_SECONDS)
    except (LLMError, llm.NoServer, SlotTaken, PromptNotCached, RedisError) as error:
        logger.debug("Conversation %s gets no title: %r", pk, error)


def _find(pk: int) -> tuple[str, PromptInput] | None:
    conversations = Conversation.objects.select_related("server", "system_prompt", "active_leaf")
    conversation = conversations.filter(pk=pk, deleted_at=None).first()
    if conversation is None or not is_automatic(conversation):
        return None
    leaf = conversation.active_leaf
    if leaf is None or not leaf.is_finished or leaf.role != Role.ASSISTANT:
        return None
    return conversation.title, side_request(conversation, QUESTION, max_tokens=TITLE_TOKENS)


async def _try_idle_slot(person: int, prepared: PreparedRequest) -> str | None:
    """Return a title; None if no slot is idle.

    Raises:
        SlotTaken: something else needed it.
        PromptNotCached: the prompt is no longer in the server's cache.
    """
    try:
        async with release_slot():
            answer = await complete_on_idle_slot(
                person, prepared, label="Title", only_if_cached=True
            )
            return parse_title(answer)
    except NoSlot:
        return None


def _save(pk: int, old_title: str, title: str) -> None:
    """Save a title, unless a person has renamed the conversation meanwhile."""
    if title:
        Conversation.objects.filter(pk=pk, title=old_title).update(title=title)
