"""Summaries of what was cut: written by the model, in the background, on an idle slot.

The request is the prompt that held the cut part, one question longer, so a server that still has
that prompt in its cache processes only the question.
"""

import asyncio
import contextvars
import logging
from contextlib import suppress
from datetime import timedelta

from asgiref.sync import async_to_sync
from django.utils import timezone
from redis.exceptions import RedisError

from apps.chat.answering import prefill
from apps.chat.answering.side_requests import complete_on_idle_slot, release_slot
from apps.chat.models import Conversation, Message, Summary, SummaryState
from apps.chat.models.summaries import INTERRUPTED
from apps.chat.prompt.build import PromptInput, side_request
from apps.chat.prompt.context import RECALL
from apps.chat.prompt.prepare import PreparedRequest, prepare
from apps.core.text.storable import to_storable
from apps.llm.errors import LLMError
from apps.llm.permits import NoSlot, SlotTaken
from apps.runtime.async_db import in_db
from apps.runtime.threads.thread_pool_middleware import serving_loop
from apps.servers import services as llm

logger = logging.getLogger(__name__)

QUESTION = (
    f"{RECALL} Keep names, numbers, decisions and open questions. "
    "Use at most 200 words and the language of the conversation."
)
SUMMARY_TOKENS = 600
MAX_WAIT = timedelta(minutes=3)
RETRY_SECONDS = 1.0
NO_SLOT = "No slot was free for 3 minutes."
EMPTY_ANSWER = "The model returned no text."

_running: set[asyncio.Task[None]] = set()  # a loop itself holds its tasks weakly


def start_summary(upto: Message) -> Summary:
    """Start to summarise the branch up to a message, and return at once. Synchronous."""
    summary, _ = Summary.objects.update_or_create(
        upto=upto,
        defaults={"state": SummaryState.RUNNING, "text": "", "created": timezone.now()},
    )
    loop = serving_loop()
    if loop is not None:
        loop.call_soon_threadsafe(start, summary.pk)
    else:
        async_to_sync(write)(summary.pk)
    return summary


def start(pk: int) -> None:
    task = asyncio.get_running_loop().create_task(write(pk), context=contextvars.Context())
    _running.add(task)
    task.add_done_callback(_running.discard)


async def write(pk: int) -> None:
    """Write and save one summary; then the server processes the prompt that begins with it."""
    state, text = SummaryState.FAILED, INTERRUPTED
    try:
        prompt = await in_db(_prompt_of, pk)
        text = await asyncio.wait_for(_summarise(prompt), MAX_WAIT.total_seconds())
        state = SummaryState.READY if text else SummaryState.FAILED
        text = text or EMPTY_ANSWER
    except TimeoutError:
        text = NO_SLOT
    except (LLMError, llm.NoServer, RedisError) as error:
        text = str(error)
    finally:
        await in_db(_save, pk, state, text)
    if state == SummaryState.READY:
        await in_db(_start_prefill, pk)


def _prompt_of(pk: int) -> PromptInput:
    upto = Message.objects.select_related(
        "conversation__server", "conversation__system_prompt"
    ).get(summary=pk)
    return side_request(upto.conversation, QUESTION, max_tokens=SUMMARY_TOKENS, leaf=upto)


async def _summarise(prompt: PromptInput) -> str:
    prepared = prepare(prompt, await llm.refresh_server(prompt.server))
    while True:
        if not await in_db(_is_answering, prompt.conversation):
            text = await _try_idle_slot(prompt, prepared)
            if text is not None:
                return text
        await asyncio.sleep(RETRY_SECONDS)  # what was processed stays in the server's cache


async def _try_idle_slot(prompt: PromptInput, prepared: PreparedRequest) -> str | None:
    """Return a summary; None if no slot was idle, or another request needed it."""
    texts: list[str] = []

    async def work() -> None:
        with suppress(NoSlot, SlotTaken):
            async with release_slot():
                texts.append(await complete_on_idle_slot(prompt.person, prepared, label="Summary"))

    task = prefill.run_side_task(prompt.conversation, work)
    if task is None:
        return None
    try:
        await asyncio.wait([task])
    finally:
        task.cancel()
    if not task.cancelled():
        task.result()
    return texts[0].strip() if texts else None


def _is_answering(conversation: int) -> bool:
    return Message.objects.unfinished().filter(conversation=conversation).exists()


def _save(pk: int, state: SummaryState, text: str) -> None:
    Summary.objects.filter(pk=pk).update(state=state, text=to_storable(text))


def _start_prefill(pk: int) -> None:
    """Start a prefill: the summary is near the start of the prompt, so the rest changes too."""
    conversations = Conversation.objects.select_related("server", "system_prompt", "active_leaf")
    prefill.start(conversations.get(messages__summary=pk), "")
