"""One answer, from question to saved message, as a background task of the web process.

A process runs its answers under a name of its own and renews a heartbeat in Redis. Each answer
says there who runs it, so any process can pass Stop on, and can see when the runner is gone (at
once on its machine, elsewhere when the heartbeat runs out): then what the answer's events still
hold is saved and the answer is marked interrupted, whenever it is read next.
"""

import asyncio
import contextvars
import logging
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, suppress
from datetime import timedelta
from weakref import WeakKeyDictionary

from asgiref.sync import async_to_sync
from django.db import transaction
from django.utils import timezone
from redis.exceptions import RedisError

from apps.chat.answering import event_log, stream, titles
from apps.chat.answering.event_log import AnswerLog
from apps.chat.answering.events import STOPPED, Entry, Snapshot, as_json
from apps.chat.answering.outcome import INTERRUPTED, INTERRUPTED_DETAIL, WAITED_DETAIL, Outcome
from apps.chat.answering.turn import write
from apps.chat.models import CallState, Conversation, Message, Status, ToolCall
from apps.chat.prompt import build, cache_loss, cache_record
from apps.chat.tools import approval, calling, history
from apps.core.text.storable import to_storable
from apps.llm.errors import LLMError
from apps.runtime.async_db import in_db
from apps.runtime.process_identity import current_process_id, has_exited
from apps.runtime.redis import async_redis, sync_redis
from apps.runtime.thread_pool import serving_loop
from apps.servers import services as llm

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 15
RENEW_SECONDS = 3
# An answer that nobody has begun to run within this time will not be run any more.
START_WITHIN = timedelta(seconds=15)
STOP_SECONDS = 2.0
STOP_ATTEMPTS = 5
# The keeper outlives the last answer by this: most often another one follows.
LINGER_SECONDS = 30.0


def begin(answer: Message) -> None:
    """Begins to write an answer, in the event loop that serves the request in hand.

    Synchronous: it reads what the answer needs on the connection that has just saved it. It is to
    be called after the transaction that did.
    """
    try:
        ask = build.for_answer(answer)
    except llm.NoServer:
        ask = None  # the answer itself is to say so
    loop = serving_loop()
    if loop is not None:
        loop.call_soon_threadsafe(lambda: _runner().start(answer.pk, ask))
    else:
        async_to_sync(start)(answer.pk, ask)


async def start(answer_id: int, ask: build.Ask | None = None) -> None:
    """Begins to write an answer in this event loop. Returns at once."""
    _runner().start(answer_id, ask)


async def stop(answer_id: int) -> None:
    """Stops an answer, whichever process writes it, and waits a moment for its end.

    The connection to the model server is closed, which frees its slot; the text is kept.
    """
    if not _runner().stop(answer_id) and not await _stop_elsewhere(answer_id):
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(STOP_SECONDS):
            async for entry in stream.follow(answer_id):
                if entry is not None and entry.is_end:
                    break


async def tell(answer_id: int, call: int) -> None:
    """Has the process that writes an answer look at a call that somebody has decided about."""
    await _order(answer_id, f"call:{call}")


async def _stop_elsewhere(answer_id: int) -> bool:
    """Tells the process that writes it; False where none does."""
    return await _order(answer_id, str(answer_id))


async def _order(answer_id: int, order: str) -> bool:
    redis = async_redis()
    for _ in range(STOP_ATTEMPTS):
        runner = await redis.get(_runner_of(answer_id))
        if isinstance(runner, bytes):
            orders = _orders(runner.decode())
            await redis.rpush(orders, order)
            await redis.expire(orders, HEARTBEAT_SECONDS)
            return True
        # It may have begun this moment: a process says so with the next it has for Redis.
        await asyncio.sleep(event_log.COALESCE_SECONDS)
    return False


async def events(answer: Message, after: int | None = None) -> AsyncIterator[Entry | None]:
    """An answer's events after a position, or from a snapshot on; None says it is still quiet."""
    if answer.is_finished and (after is None or not await stream.exists(answer.pk)):
        for entry in await in_db(saved_entries, answer):
            yield entry
        return
    if not (answer.is_finished or event_log.here(answer.pk) is not None) and await in_db(
        _settled_now, answer
    ):
        for entry in await in_db(saved_entries, answer):
            yield entry
        return
    async with aclosing(stream.follow(answer.pk, after)) as entries:  # type: ignore[type-var]
        async for entry in entries:
            if entry is None and await in_db(_settled_now, answer):
                break
            yield entry
        else:
            return
    for entry in await in_db(saved_entries, answer):
        yield entry


def saved_entries(answer: Message) -> list[Entry | None]:
    """The events of a finished answer, from the database. They have no position. Synchronous."""
    calls = tuple(calling.described(call) for call in answer.tool_calls.all())
    snapshot = Snapshot(answer.status, answer.content, answer.reasoning, calls)
    found: list[Entry | None] = [Entry(0, "snapshot", snapshot.as_json())]
    if answer.usage is not None:
        found.append(Entry(0, "usage", as_json(answer.usage)))
    if answer.error_code:
        data = {"code": answer.error_code, "detail": answer.error_detail}
        found.append(Entry(0, "error", as_json(data)))
    else:
        found.append(Entry(0, "done", as_json({"finish_reason": answer.finish_reason})))
    return found


def so_far(answer: Message) -> Snapshot:
    """What an unfinished answer says up to now. Synchronous."""
    return stream.stored(sync_redis(), answer.pk)


def settle(answers: Iterable[Message]) -> None:
    """Marks those answers interrupted whose runner is gone, and saves the text they had.

    To be called before an unfinished answer is shown. Synchronous: it uses the database.
    """
    for answer in answers:
        if not answer.is_finished and not _is_running(answer):
            _interrupt(answer)


def _settled_now(answer: Message) -> bool:
    """Whether a quiet answer is at its end: saved by whoever ran it, or left behind by him."""
    answer.refresh_from_db()
    settle([answer])
    return answer.is_finished


def _is_running(answer: Message) -> bool:
    redis = sync_redis()
    runner = redis.get(_runner_of(answer.pk))
    if runner is None:
        return timezone.now() - answer.created < START_WITHIN
    assert isinstance(runner, bytes)
    process = redis.get(_heartbeat(runner.decode()))
    return isinstance(process, bytes) and not has_exited(process.decode())


def _interrupt(answer: Message) -> None:
    left = so_far(answer)
    _end_calls(answer.pk, but_waiting=True)
    Message.objects.unfinished().filter(pk=answer.pk).update(
        status=Status.INTERRUPTED,
        content=to_storable(left.text),
        reasoning=to_storable(left.reasoning),
        error_code=INTERRUPTED,
        error_detail=WAITED_DETAIL if answer.waits_for_person else INTERRUPTED_DETAIL,
        finished=timezone.now(),
    )
    answer.refresh_from_db()


def _end_calls(answer_id: int, *, but_waiting: bool) -> list[ToolCall]:
    """Ends the calls of an answer that has ended before they had; returns them.

    Args:
        but_waiting: those that a person may still allow stay. He did not stop the answer.
    """
    open_calls = ToolCall.objects.unfinished().filter(answer=answer_id)
    if but_waiting:
        open_calls = open_calls.exclude(state=CallState.WAITING)
    ended = list(open_calls)
    history.end(ended)
    return ended


class _Runner:
    """The answers that one event loop is writing."""

    def __init__(self) -> None:
        self.name = uuid.uuid4().hex
        self._work: dict[int, asyncio.Task[None]] = {}
        self._stopped: set[int] = set()
        self._running: dict[int, asyncio.Task[None]] = {}
        self._keeper: asyncio.Task[None] | None = None
        self._dismissal: asyncio.TimerHandle | None = None

    def start(self, answer_id: int, ask: build.Ask | None = None) -> None:
        self._sign(answer_id)
        log = AnswerLog(answer_id)  # from now on readers of this process find it
        # A context of its own: the request's would bind the answer to what ends with it.
        task = asyncio.create_task(self._run(answer_id, log, ask), context=contextvars.Context())
        self._running[answer_id] = task  # the loop itself holds tasks weakly
        task.add_done_callback(lambda _: self._forget(answer_id))
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), context=contextvars.Context())
        if self._dismissal is not None:
            self._dismissal.cancel()
            self._dismissal = None

    def stop(self, answer_id: int) -> bool:
        """Stops an answer that is written here; False where it is not."""
        if answer_id not in self._running:
            return False
        self._stopped.add(answer_id)
        if work := self._work.get(answer_id):
            work.cancel()
        return True

    def _sign(self, answer_id: int) -> None:
        """Says in Redis who writes it. Nobody waits for that: see START_WITHIN."""
        journal = event_log.journal()
        if self._keeper is None:
            journal.add("SET", _heartbeat(self.name), current_process_id(), "EX", HEARTBEAT_SECONDS)
        expires = event_log.UNFINISHED_EXPIRES_SECONDS
        journal.add("SET", _runner_of(answer_id), self.name, "EX", expires)

    def _forget(self, answer_id: int) -> None:
        del self._running[answer_id]
        self._stopped.discard(answer_id)
        if not self._running and self._keeper is not None:
            loop = asyncio.get_running_loop()
            self._dismissal = loop.call_later(LINGER_SECONDS, self._keeper.cancel)

    async def _keep(self) -> None:
        """Renews the heartbeat and obeys orders to stop, while there are answers to write."""
        try:
            while True:
                await self._obey()
        finally:
            self._keeper = None

    async def _obey(self) -> None:
        try:
            await async_redis().set(
                _heartbeat(self.name), current_process_id(), ex=HEARTBEAT_SECONDS
            )
            order = await async_redis().blpop([_orders(self.name)], timeout=RENEW_SECONDS)
        except RedisError as error:
            logger.warning("No heartbeat for the answers being written: %s", error)
            await asyncio.sleep(1)
        else:
            if order is not None:
                assert isinstance(order[1], bytes)
                self._carry_out(order[1].decode())

    def _carry_out(self, order: str) -> None:
        if order.startswith("call:"):
            approval.look(int(order.removeprefix("call:")))
        else:
            self.stop(int(order))

    async def _run(self, answer_id: int, log: AnswerLog, ask: build.Ask | None) -> None:
        outcome = Outcome()
        work = asyncio.create_task(write(answer_id, ask, log, outcome))
        self._work[answer_id] = work
        if answer_id in self._stopped:  # the order came before the work began
            work.cancel()
        try:
            await work
        except asyncio.CancelledError:
            if answer_id in self._stopped:
                outcome.ended(Status.STOPPED, STOPPED)
        except (LLMError, llm.NoServer) as error:
            code = error.code if isinstance(error, LLMError) else "no_server"
            outcome.ended(Status.FAILED, code=code, detail=str(error))
        except Exception:
            logger.exception("Answer %s failed", answer_id)
            detail = "Workbench failed while generating this answer. Details are in the log."
            outcome.ended(Status.FAILED, code="internal_error", detail=detail)
        finally:
            await asyncio.wait([work])
            self._work.pop(answer_id, None)
            self._stopped.discard(answer_id)
            await self._finish(answer_id, log, outcome)

    async def _finish(self, answer_id: int, log: AnswerLog, outcome: Outcome) -> None:
        """Saves, then says so: whoever reads the end finds the answer saved."""
        ended: list[ToolCall] = []
        try:
            ended = await in_db(_save, answer_id, log, outcome)
        finally:
            # Should saving have failed, the text is still in the stream and is saved from there.
            event_log.journal().add("DEL", _runner_of(answer_id))
        for call in ended:
            log.call("tool_result", calling.described(call))
        if measured := outcome.measured():
            log.add("usage", **measured)
        if outcome.error_code:
            await log.end("error", code=outcome.error_code, detail=outcome.error_detail)
        else:
            await log.end("done", finish_reason=outcome.finish_reason)
        if outcome.status == Status.COMPLETE and outcome.ask is not None:
            titles.begin(outcome.ask)


@transaction.atomic
def _save(answer_id: int, log: AnswerLog, outcome: Outcome) -> list[ToolCall]:
    """Saves an answer as it is now. Returns the calls that ended with it."""
    ask = outcome.ask
    changed = {
        "status": outcome.status,
        "content": to_storable(log.text),
        "reasoning": to_storable(log.reasoning),
        "error_code": outcome.error_code,
        "error_detail": outcome.error_detail,
        "finish_reason": outcome.finish_reason,
        "model": outcome.model,
        "max_tokens": outcome.max_tokens,
        "system_prompt": ask and ask.system_prompt,
        "cut_before_message": outcome.cut_before_message,
        "prompt_prefix": outcome.head,
        "reasoning_ms": outcome.reasoning_ms(),
        "finished": timezone.now(),
        **outcome.measured(),
    }
    # Also over "interrupted": should a heartbeat have come late, the whole text is here.
    writable = [Status.QUEUED, Status.INTERRUPTED]
    saved = Message.objects.filter(pk=answer_id, status__in=writable).update(**changed)
    was_left = outcome.status == Status.INTERRUPTED
    # One that goes on from another has that one's calls before it has called anything.
    may_have_calls = outcome.has_called or ask is None
    ended = _end_calls(answer_id, but_waiting=was_left) if may_have_calls else []
    if not saved or ask is None:
        return ended
    Conversation.objects.filter(pk=ask.conversation).update(updated=timezone.now())
    if outcome.server is not None and outcome.tokens_read >= cache_loss.WORTH_SAYING_TOKENS:
        cache_record.note_loss(Message.objects.get(pk=answer_id), outcome.server)
    return ended


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _Runner] = WeakKeyDictionary()


def _runner() -> _Runner:
    loop = asyncio.get_running_loop()
    if loop not in _by_loop:
        _by_loop[loop] = _Runner()
    return _by_loop[loop]


def _runner_of(answer_id: int) -> str:
    return f"answer:{answer_id}:runner"


def _heartbeat(runner: str) -> str:
    return f"runner:{runner}:alive"


def _orders(runner: str) -> str:
    return f"runner:{runner}:orders"
