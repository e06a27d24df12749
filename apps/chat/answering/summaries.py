"""A summary of what was cut: written by the model, in the background, on a slot nobody needs.

It is asked for with the very prompt that the cut part was read in, one question longer, so that a
server which still has that prompt in its cache computes only the question and the answer.
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
from apps.chat.models import Conversation, Message, Summary, SummaryState
from apps.chat.prompt import build
from apps.chat.prompt.context import RECALL
from apps.llm.errors import LLMError
from apps.llm.permits import NoSlot, SlotTaken
from apps.runtime.async_db import in_db
from apps.runtime.thread_pool import serving_loop
from apps.servers import services as llm

logger = logging.getLogger(__name__)

QUESTION = (
    f"{RECALL} Keep names, numbers, decisions and open questions. "
    "Use at most 200 words and the language of the conversation."
)
SUMMARY_TOKENS = 600
PATIENCE = timedelta(minutes=3)
ASK_AGAIN_SECONDS = 1.0
NO_SLOT = "No slot was free for 3 minutes."
NOTHING_SAID = "The model returned no text."
INTERRUPTED = "Workbench was stopped while generating it."

_running: set[asyncio.Task[None]] = set()  # a loop itself holds its tasks weakly


def begin(upto: Message) -> Summary:
    """Has what was said up to a message summarised. Returns at once. Synchronous."""
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


def settle(summary: Summary) -> None:
    """Marks one failed whose writer is gone. Synchronous."""
    lasts = 2 * PATIENCE
    if summary.state == SummaryState.RUNNING and timezone.now() - summary.created > lasts:
        summary.state, summary.text = SummaryState.FAILED, INTERRUPTED
        summary.save(update_fields=["state", "text"])


def start(pk: int) -> None:
    task = asyncio.get_running_loop().create_task(write(pk), context=contextvars.Context())
    _running.add(task)
    task.add_done_callback(_running.discard)


async def write(pk: int) -> None:
    """Writes one summary and keeps it; then the server reads the prompt that begins with it."""
    state, text = SummaryState.FAILED, INTERRUPTED
    try:
        ask = await in_db(_ask, pk)
        text = await asyncio.wait_for(_said(ask), PATIENCE.total_seconds())
        state = SummaryState.READY if text else SummaryState.FAILED
        text = text or NOTHING_SAID
    except TimeoutError:
        text = NO_SLOT
    except (LLMError, llm.NoServer, RedisError) as error:
        text = str(error)
    finally:
        await in_db(_save, pk, state, text)
    if state == SummaryState.READY:
        await in_db(_read_ahead, pk)


def _ask(pk: int) -> build.Ask:
    upto = Message.objects.select_related(
        "conversation__server", "conversation__system_prompt"
    ).get(summary=pk)
    return build.aside(upto.conversation, QUESTION, max_tokens=SUMMARY_TOKENS, leaf=upto)


async def _said(ask: build.Ask) -> str:
    prepared = build.prepare(ask, await llm.refresh_server(ask.server))
    while True:
        if not await in_db(_is_answering, ask.conversation):
            said = await _said_once(ask, prepared)
            if said is not None:
                return said
        await asyncio.sleep(ASK_AGAIN_SECONDS)  # what was read of it stays in the server's cache


async def _said_once(ask: build.Ask, prepared: build.Prepared) -> str | None:
    """None where no slot was idle or something else needed it: the next question, first of all."""
    said: list[str] = []

    async def work() -> None:
        with suppress(NoSlot, SlotTaken):
            async with prefill.let_go():
                said.append(await prefill.said_aside(ask, prepared, label="Summary"))

    task = prefill.aside(ask.conversation, work)
    if task is None:
        return None
    try:
        await asyncio.wait([task])
    finally:
        task.cancel()
    if not task.cancelled():
        task.result()
    return said[0].strip() if said else None


def _is_answering(conversation: int) -> bool:
    return Message.objects.unfinished().filter(conversation=conversation).exists()


def _save(pk: int, state: SummaryState, text: str) -> None:
    Summary.objects.filter(pk=pk).update(state=state, text=text.replace("\0", ""))


def _read_ahead(pk: int) -> None:
    """Its place is near the start of the prompt: what comes after is read again, better now."""
    conversations = Conversation.objects.select_related("server", "system_prompt", "active_leaf")
    prefill.begin(conversations.get(messages__summary=pk), "")
