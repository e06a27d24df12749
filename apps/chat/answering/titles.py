"""Titles by the model: one more question of the conversation itself, on a slot that nobody needs.

A conversation is called by its first question at once. After one of its first answers the model is
asked for something better. What it is asked begins with the prompt it has just read, so only the
question itself is new to it; and the next question of the person ends it at once.
"""

import asyncio
import logging
import re

from django.conf import settings
from redis.exceptions import RedisError

from apps.chat.answering import prefill
from apps.chat.models import TITLE_LENGTH, Conversation, Message, Role
from apps.chat.prompt import build
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
# Who asks on at once is not to find the slot of his conversation taken.
START_AFTER_SECONDS = 3.0
# Nobody waits for a title: what has none after so many messages keeps its first question.
MESSAGES = 6
ATTEMPTS = 5
ASK_AGAIN_SECONDS = 1.0

_LABEL = re.compile(r"^(?:title|titel|titre|título)\s*:\s*", re.IGNORECASE)
_MARKS = re.compile(r"\*\*|__|`")  # of Markdown, within it
_AROUND = " \t*_#`\"'“”„«»‘’"


def first_line(text: str) -> str:
    """A title for what begins so."""
    line = text.strip().splitlines()[0]
    return line if len(line) <= TITLE_LENGTH else f"{line[: TITLE_LENGTH - 1].rstrip()}…"


def cleaned(said: str) -> str:
    """The title in what a model said: its first line without decoration, "" where there is none."""
    line = next((line for line in said.splitlines() if line.strip(_AROUND)), "")
    title = _LABEL.sub("", line.strip(_AROUND)).strip(_AROUND).rstrip(".:")
    title = _MARKS.sub("", title)
    return title if 0 < len(title) <= TITLE_LENGTH else ""


def is_automatic(conversation: Conversation) -> bool:
    """Whether nobody has named it yet, neither a person nor a model. Synchronous."""
    questions = Message.objects.filter(conversation=conversation, parent=None, role=Role.USER)
    texts = questions.values_list("content", flat=True)
    return any(text.strip() and first_line(text) == conversation.title for text in texts)


def may_come(conversation: Conversation) -> bool:
    """Whether it is worth asking again whether there is a title. Synchronous."""
    if not settings.TITLES:
        return False
    count = conversation.messages.filter(deleted_at=None)[: MESSAGES + 1].count()
    return count <= MESSAGES and is_automatic(conversation)


def begin(ask: build.Ask) -> None:
    """Has a title written for what was just answered. Returns at once; from an event loop."""
    is_automatic = bool(ask.opening.strip()) and first_line(ask.opening) == ask.title
    if settings.TITLES and len(ask.turns) < MESSAGES and is_automatic:
        prefill.aside(ask.conversation, lambda: _write(ask.conversation))


async def _write(pk: int) -> None:
    try:
        await asyncio.sleep(START_AFTER_SECONDS)
        found = await in_db(_find, pk)
        if found is None:
            return
        called, ask = found
        prepared = build.prepare(ask, await llm.refresh_server(ask.server))
        counted = ask.counted.cut_before_message if ask.counted else None
        if prepared.target.is_demo or prepared.cut_before_message != counted:
            return  # another beginning would have to be read, and the next question's would be lost
        for _ in range(ATTEMPTS):
            title = await _on_an_idle_slot(ask, prepared)
            if title is not None:
                await in_db(_save, pk, called, title)
                return
            await asyncio.sleep(ASK_AGAIN_SECONDS)
    except (LLMError, llm.NoServer, SlotTaken, prefill.NotRead, RedisError) as error:
        logger.debug("Conversation %s gets no title: %r", pk, error)


def _find(pk: int) -> tuple[str, build.Ask] | None:
    conversations = Conversation.objects.select_related("server", "system_prompt", "active_leaf")
    conversation = conversations.filter(pk=pk, deleted_at=None).first()
    if conversation is None or not is_automatic(conversation):
        return None
    leaf = conversation.active_leaf
    if leaf is None or not leaf.is_finished or leaf.role != Role.ASSISTANT:
        return None
    ask = build.aside(conversation, QUESTION, max_tokens=TITLE_TOKENS)
    return conversation.title, ask


async def _on_an_idle_slot(ask: build.Ask, prepared: build.Prepared) -> str | None:
    """None where no slot is idle.

    Raises:
        SlotTaken: something else needed it.
        NotRead: another conversation's prompt or a restart has taken its own from the cache.
    """
    try:
        async with prefill.let_go():
            said = await prefill.said_aside(ask, prepared, label="Title", must_be_read=True)
            return cleaned(said)
    except NoSlot:
        return None


def _save(pk: int, called: str, title: str) -> None:
    """Unless somebody has named it meanwhile."""
    if title:
        Conversation.objects.filter(pk=pk, title=called).update(title=title)
