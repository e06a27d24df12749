"""Writing the events of an answer, for readers in this process and for Redis.

Redis gets what all answers of a process have said since its last turn in one round trip. A long
answer does not grow its stream without end: every CHECKPOINT_EVERY entries a `snapshot` of the
whole text is written and what lies before it is dropped.
"""

import asyncio
import contextvars
import logging
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from redis.exceptions import RedisError

from apps.chat.answering.events import SPOKEN, Entry, Snapshot, as_json
from apps.runtime.redis import async_redis

logger = logging.getLogger(__name__)

# Faster than this the eye does not read: what comes within it becomes one event.
COALESCE_SECONDS = 0.04
REDIS_AGAIN_SECONDS = 0.5
CHECKPOINT_EVERY = 2000
# A process that died leaves its text here until somebody looks at the answer again.
UNFINISHED_EXPIRES_SECONDS = 7 * 24 * 3600
FINISHED_EXPIRES_SECONDS = 600


class AnswerLog:
    """Writes one answer's events.

    log = AnswerLog(answer_id)
    log.token("Hel")
    log.token("lo")
    await log.end("done", finish_reason="stop")

    The first token is written at once, later ones together with what comes within
    COALESCE_SECONDS. While Redis is away, readers in this process go on; what it missed is written
    when it is back.
    """

    def __init__(self, answer_id: int) -> None:
        self.answer_id = answer_id
        self.entries: list[Entry] = []
        """Since the last checkpoint, which is then the first of them."""
        self.unwritten: list[Entry] = []
        """What Redis does not have yet."""
        self._journal = journal()
        self._last_id = 0
        self._spoken: dict[str, list[str]] = {"token": [], "reasoning": []}
        self._calls: dict[int, dict[str, Any]] = {}
        self._pending: list[tuple[str, Any]] = []
        self._spoke = 0.0
        self._waiters: list[asyncio.Future[None]] = []
        _written_here[answer_id] = self

    @property
    def text(self) -> str:
        return "".join(self._spoken["token"])

    @property
    def reasoning(self) -> str:
        return "".join(self._spoken["reasoning"])

    def token(self, text: str) -> None:
        self._speak("token", text)

    def think(self, text: str) -> None:
        self._speak("reasoning", text)

    def call(self, event: str, data: dict[str, Any]) -> None:
        """News of a tool's call; `data["id"]` says of which."""
        self._calls[data["id"]] = data
        self.add(event, **data)

    def add(self, event: str, **data: Any) -> None:
        self._pending.append((event, data))
        self.flush()

    async def end(self, event: str, **data: Any) -> None:
        """Writes what is left and the end. Nothing may follow."""
        self.add(event, **data)
        self._journal.add("EXPIRE", key_of(self.answer_id), FINISHED_EXPIRES_SECONDS)
        await self._journal.written()

    async def changed(self, within: float) -> None:
        """Returns when there are more entries, or after so many seconds."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._waiters.append(waiter)
        timer = loop.call_later(within, _wake, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def flush(self) -> None:
        """Shows readers what is pending, and leaves it for Redis."""
        if not self._pending:
            return
        new = [self._next(event, data) for event, data in self._pending]
        self._pending.clear()
        if len(self.entries) + len(new) > CHECKPOINT_EVERY and not new[-1].is_end:
            new.append(Entry(self._take_id(), "snapshot", self._checkpoint()))
        if any(entry.event in SPOKEN for entry in new):
            self._spoke = self._journal.now()
        self.unwritten.extend(new)
        self._journal.write(self)
        self.entries.extend(new)
        if new[-1].event == "snapshot":
            self.entries = new[-1:]
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            _wake(waiter)

    def _speak(self, event: str, text: str) -> None:
        self._spoken[event].append(text)
        if self._pending and self._pending[-1][0] == event:
            self._pending[-1][1].append(text)
            return
        self._pending.append((event, [text]))
        if self._journal.now() - self._spoke >= COALESCE_SECONDS:
            self.flush()
        else:
            self._journal.flush_soon(self)

    def _next(self, event: str, data: Any) -> Entry:
        return Entry(
            self._take_id(), event, as_json({"text": "".join(data)} if event in SPOKEN else data)
        )

    def _take_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _checkpoint(self) -> str:
        calls = tuple(self._calls.values())
        return Snapshot("streaming", self.text, self.reasoning, calls).as_json()


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


class Journal:
    """One clock and one way to Redis for all the answers that an event loop writes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.now = loop.time
        self._loop = loop
        self._to_flush: dict[AnswerLog, None] = {}
        self._to_write: dict[AnswerLog, None] = {}
        self._commands: list[tuple[str | int, ...]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None

    def flush_soon(self, log: AnswerLog) -> None:
        """At the next tick of the clock, together with the others."""
        self._to_flush[log] = None
        self._tick_in(COALESCE_SECONDS)

    def write(self, log: AnswerLog) -> None:
        """Has entries that Redis is to get at the next tick."""
        self._to_write[log] = None
        self._tick_in(COALESCE_SECONDS)

    def add(self, *command: str | int) -> None:
        """A command that goes to Redis with the entries, after those that are waiting."""
        self._commands.append(command)
        self._tick_in(COALESCE_SECONDS)

    async def written(self) -> None:
        """Tries to write all there is now; returns also when Redis is away."""
        if self._writing is not None:
            await asyncio.wait([self._writing])
        self._write_now()
        if self._writing is not None:
            await asyncio.wait([self._writing])

    def _tick_in(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(seconds, self._tick)

    def _tick(self) -> None:
        self._timer = None
        logs, self._to_flush = self._to_flush, {}
        for log in logs:
            log.flush()
        self._write_now()

    def _write_now(self) -> None:
        if self._writing is None and (self._to_write or self._commands):
            # A context of its own: it may be begun by a request, and outlives it.
            self._writing = self._loop.create_task(self._write(), context=contextvars.Context())

    async def _write(self) -> None:
        logs = {log: len(log.unwritten) for log in self._to_write}
        added = len(self._commands)
        self._to_write = {}
        try:
            pipeline = async_redis().pipeline(transaction=False)
            for log in logs:
                for command in _commands(log):
                    pipeline.execute_command(*command)
            for command in self._commands[:added]:
                pipeline.execute_command(*command)
            # An entry that was written before the connection broke is refused the second time.
            await pipeline.execute(raise_on_error=False)
        except RedisError as error:
            logger.warning("What answers say is not in Redis for now: %s", error)
            self._to_write = dict.fromkeys([*logs, *self._to_write])
            self._tick_in(REDIS_AGAIN_SECONDS)
        else:
            for log, count in logs.items():
                del log.unwritten[:count]
            del self._commands[:added]
        finally:
            self._writing = None


def _commands(log: AnswerLog) -> Iterator[tuple[str | int, ...]]:
    key = key_of(log.answer_id)
    for entry in log.unwritten:
        yield ("XADD", key, f"{entry.id}-0", "e", entry.event, "d", entry.data)
        if entry.event == "snapshot":
            yield ("XTRIM", key, "MINID", f"{entry.id}-0")
        if entry.id == 1 or entry.event == "snapshot":
            yield ("EXPIRE", key, UNFINISHED_EXPIRES_SECONDS)


_journals: WeakKeyDictionary[asyncio.AbstractEventLoop, Journal] = WeakKeyDictionary()


def journal() -> Journal:
    """The journal of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _journals:
        _journals[loop] = Journal(loop)
    return _journals[loop]


# The logs this process writes or that a reader of this process still follows.
_written_here: WeakValueDictionary[int, AnswerLog] = WeakValueDictionary()


def here(answer_id: int) -> AnswerLog | None:
    """The log of an answer that this process writes, or has just written."""
    return _written_here.get(answer_id)


def key_of(answer_id: int) -> str:
    """Of the answer's stream in Redis."""
    return f"answer:{answer_id}:events"
