"""The answers that this process writes, as background tasks of the web process.

Each event loop has one runner. It registers its answers in Redis, so any process can pass Stop on,
and can see when the runner has died (`runner_registry`).
"""

import asyncio
import contextvars
import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from weakref import WeakKeyDictionary

from asgiref.sync import async_to_sync
from redis.exceptions import RedisError

from apps.chat.answering import prefill, titles
from apps.chat.answering.turn import Turn
from apps.chat.models import Message, Status
from apps.chat.prompt.build import PromptInput
from apps.chat.streaming import runner_registry, stream
from apps.chat.streaming.events import STOPPED
from apps.chat.tools import approval
from apps.llm.errors import LLMError
from apps.runtime.threads.head_start import HeadStart
from apps.runtime.threads.thread_pool_middleware import serving_loop
from apps.servers import services as llm

logger = logging.getLogger(__name__)

COMMAND_TIMEOUT_SECONDS = 3
STOP_SECONDS = 2.0
# The heartbeat outlives the last answer by this: most often another one follows.
LINGER_SECONDS = 30.0
ANSWER_NOW = "now:"  # a command of runners, followed by the answer
INTERNAL_ERROR = "Workbench failed while generating this answer. Details are in the log."


def start_answer(answer: Message, sent: "SentRequest | None" = None) -> None:
    """Start to write an answer, in the event loop that serves the current request.

    Synchronous. Call it after the transaction that created the answer.

    Args:
        sent: its request, if that was sent meanwhile.
    """
    if sent is None:
        _call_in_loop(lambda: _runner().start(Turn(answer.pk)))
    else:
        sent.attach(answer)


@contextmanager
def send_request(prompt: PromptInput | None) -> "Iterator[SentRequest | None]":
    """Send the request for an answer while the block saves the answer: for `start_answer`.

    Synchronous. The block begins when the request is on its way, or waits for something. If it
    fails, the request is cancelled. Without a prompt nothing is sent.
    """
    sent = SentRequest(prompt) if prompt is not None else None
    try:
        yield sent
    except BaseException:
        if sent is not None:
            sent.cancel()
        raise


class SentRequest:
    """The request for an answer that is being saved. For threads: its turn lives in the loop."""

    def __init__(self, prompt: PromptInput) -> None:
        self._turn: Turn
        head_start = HeadStart()
        _call_in_loop(lambda: self._send(prompt, head_start))
        if serving_loop() is not None:  # else that loop has ended
            head_start.wait()

    def attach(self, answer: Message) -> None:
        assert answer.parent_id is not None
        pk, question = answer.pk, answer.parent_id
        # Calls of one thread run in their order, so there is a turn by then.
        _call_in_loop(lambda: self._attach(pk, question))

    def cancel(self) -> None:
        _call_in_loop(self._cancel)

    def _cancel(self) -> None:
        if not self._turn.is_saved.done():
            self._turn.cancel()

    def _attach(self, answer_id: int, question_id: int) -> None:
        if self._turn.is_saved.done():  # its loop has ended: it was of one call alone
            _runner().start(Turn(answer_id))
        else:
            _runner().attach(self._turn, answer_id, question_id)

    def _send(self, prompt: PromptInput, head_start: HeadStart) -> None:
        self._turn = Turn(prompt=prompt, on_sent=head_start.end)
        _runner().send(self._turn)


def _call_in_loop(function: Callable[[], None]) -> None:
    """Call a function in the event loop that serves the current request."""

    async def call() -> None:
        function()

    loop = serving_loop()
    if loop is not None:
        loop.call_soon_threadsafe(function)
    else:
        async_to_sync(call)()


async def stop(answer_id: int) -> None:
    """Stop an answer, whichever process writes it, and wait a moment for its end.

    The connection to the model server is closed, which frees its slot; the text is kept.
    """
    stops_here = _runner().stop(answer_id)
    if not stops_here and not await runner_registry.send_command(answer_id, str(answer_id)):
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(STOP_SECONDS):
            async for event in stream.follow(answer_id):
                if event is not None and event.is_end:
                    break


async def answer_now(answer_id: int) -> None:
    """End the thought of an answer, whichever process writes it. Its text follows at once."""
    if not await _runner().end_thinking(answer_id):
        await runner_registry.send_command(answer_id, f"{ANSWER_NOW}{answer_id}")


async def notify_runner(answer_id: int, call: int) -> None:
    """Tell the process that writes an answer that one of its calls was decided."""
    await runner_registry.send_command(answer_id, f"call:{call}")


async def wait_until_idle() -> None:
    """Wait until this event loop writes no more answers."""
    if tasks := list(_runner().tasks.values()):
        await asyncio.wait(tasks)


class Runner:
    """The answers that one event loop writes."""

    def __init__(self) -> None:
        self.name = uuid.uuid4().hex
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self._turns: dict[int, Turn] = {}
        self._unsaved: dict[Turn, asyncio.Task[None]] = {}
        self._commands: set[asyncio.Task[bool]] = set()
        self._heartbeat: asyncio.Task[None] | None = None
        self._heartbeat_end: asyncio.TimerHandle | None = None

    def start(self, turn: Turn) -> None:
        """Write an answer that is saved."""
        self._add(turn, self._task_of(turn))

    def send(self, turn: Turn) -> None:
        """Send the request for an answer that is being saved."""
        task = self._unsaved[turn] = self._task_of(turn)
        task.add_done_callback(lambda _: self._unsaved.pop(turn, None))

    def attach(self, turn: Turn, answer_id: int, question_id: int) -> None:
        """Write an answer whose request was sent, and which is saved now."""
        turn.attach(answer_id, question_id)
        self._add(turn, self._unsaved.pop(turn))

    def _task_of(self, turn: Turn) -> asyncio.Task[None]:
        # An empty context: the request's own would bind the answer to what ends with it.
        return asyncio.create_task(self._run(turn), context=contextvars.Context())

    def _add(self, turn: Turn, task: asyncio.Task[None]) -> None:
        answer_id = turn.answer_id
        self._register(answer_id)
        self._turns[answer_id] = turn
        self.tasks[answer_id] = task  # the loop itself holds tasks weakly
        task.add_done_callback(lambda _: self._remove(answer_id))
        if self._heartbeat is None:
            self._heartbeat = asyncio.create_task(
                self._handle_commands(), context=contextvars.Context()
            )
        if self._heartbeat_end is not None:
            self._heartbeat_end.cancel()
            self._heartbeat_end = None

    def stop(self, answer_id: int) -> bool:
        """Stop an answer that is written here; return False if it is not."""
        if answer_id not in self._turns:
            return False
        self._turns[answer_id].stop()
        return True

    async def end_thinking(self, answer_id: int) -> bool:
        """End the thought of an answer that is written here; return False if it is not."""
        turn = self._turns.get(answer_id)
        if turn is None:
            return False
        await turn.thought.end()
        return True

    def _register(self, answer_id: int) -> None:
        with_heartbeat = self._heartbeat is None
        runner_registry.register(answer_id, self.name, with_heartbeat=with_heartbeat)

    def _remove(self, answer_id: int) -> None:
        runner_registry.forget(answer_id)
        del self.tasks[answer_id], self._turns[answer_id]
        if not self.tasks and self._heartbeat is not None:
            loop = asyncio.get_running_loop()
            self._heartbeat_end = loop.call_later(LINGER_SECONDS, self._heartbeat.cancel)

    async def _handle_commands(self) -> None:
        """Renew the heartbeat and handle commands, while there are answers to write."""
        try:
            while True:
                await self._handle_next_command()
        finally:
            self._heartbeat = None

    async def _handle_next_command(self) -> None:
        try:
            await runner_registry.send_heartbeat(self.name)
            command = await runner_registry.next_command(self.name, COMMAND_TIMEOUT_SECONDS)
        except RedisError as error:
            logger.warning("No heartbeat for the answers being written: %s", error)
            await asyncio.sleep(1)
        else:
            if command is not None:
                self._handle_command(command)

    def _handle_command(self, command: str) -> None:
        if command.startswith("call:"):
            approval.notify(int(command.removeprefix("call:")))
        elif command.startswith(ANSWER_NOW):
            # The model server is asked meanwhile: the next command may be Stop.
            answer_id = int(command.removeprefix(ANSWER_NOW))
            task = asyncio.create_task(self.end_thinking(answer_id))
            self._commands.add(task)
            task.add_done_callback(self._commands.discard)
        else:
            self.stop(int(command))

    async def _run(self, turn: Turn) -> None:
        outcome = turn.outcome
        work = turn.work = asyncio.create_task(turn.generate())
        if turn.is_stopped:  # the command came before the work started
            work.cancel()
        try:
            await work
        except asyncio.CancelledError:
            if turn.is_stopped:
                outcome.end(Status.STOPPED, STOPPED)
            elif not turn.is_saved.done():  # the loop ends before it was saved
                turn.is_saved.set_result(False)
        except LLMError as error:
            outcome.end(Status.FAILED, code=error.code, detail=str(error))
        except llm.NoServer as error:
            outcome.end(Status.FAILED, code="no_server", detail=str(error))
        except Exception:
            logger.exception("Answer %s failed", turn.answer_id)
            outcome.end(Status.FAILED, code="internal_error", detail=INTERNAL_ERROR)
        finally:
            await asyncio.wait([work])
            turn.work = None
            if await turn.is_saved:
                await self._finish(turn)

    async def _finish(self, turn: Turn) -> None:
        await turn.finish()
        if turn.outcome.status == Status.COMPLETE and turn.prompt is not None:
            titles.write_soon(turn.prompt)
            if (usage := turn.outcome.usage) is not None:
                prefill.keep_soon(turn.prompt, usage.prompt_tokens + usage.completion_tokens)


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Runner] = WeakKeyDictionary()


def _runner() -> Runner:
    loop = asyncio.get_running_loop()
    if loop not in _by_loop:
        _by_loop[loop] = Runner()
    return _by_loop[loop]
