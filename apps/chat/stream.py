"""The events of an answer: written once, readable from any offset by any process.

They lie in a Redis stream; entry n has the id `n-0`, so that positions are numbers. Readers in the
process that writes are served from its memory, with the same entries and the same numbers, because
asking Redis for each event costs more CPU than all the rest of the way. Redis gets what all answers
of a process have said since its last turn in one round trip.

A long answer does not grow the stream without end: every CHECKPOINT_EVERY entries a `snapshot` of
the whole text is written and what lies before it is dropped. So the text can always be put together
from what a stream holds, and a reader who fell behind a checkpoint begins anew at it.
"""

import asyncio
import contextvars
import json
import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary, WeakValueDictionary

from django.conf import settings
from redis import Redis
from redis import asyncio as aioredis
from redis.exceptions import RedisError

from apps.core.redis import async_redis

logger = logging.getLogger(__name__)

# Faster than this the eye does not read: what comes within it becomes one event.
COALESCE_SECONDS = 0.04
REDIS_AGAIN_SECONDS = 0.5
PING_SECONDS = 15.0
CHECKPOINT_EVERY = 2000
# A process that died leaves its text here until somebody looks at the answer again.
UNFINISHED_EXPIRES_SECONDS = 7 * 24 * 3600
FINISHED_EXPIRES_SECONDS = 600
SPOKEN = frozenset({"token", "reasoning"})
ENDS = frozenset({"done", "error"})
STOPPED = "stopped"  # the finish_reason of an answer that a person stopped


class Entry(NamedTuple):
    """One event. `data` is JSON, made once when it was written."""

    id: int
    event: str
    data: str

    @property
    def is_end(self) -> bool:
        return self.event in ENDS


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that a stream's entries say together."""

    status: str = "queued"
    text: str = ""
    reasoning: str = ""
    calls: tuple[dict[str, Any], ...] = ()
    """Of tools, as their last events said."""

    def as_json(self) -> str:
        said = {"status": self.status, "text": self.text, "reasoning": self.reasoning}
        return as_json(said | {"calls": self.calls} if self.calls else said)


def fold(entries: Iterable[Entry]) -> Snapshot:
    """Puts the text together from entries that begin with the first one or a checkpoint."""
    status = "queued"
    parts: dict[str, list[str]] = {"token": [], "reasoning": []}
    calls: dict[int, dict[str, Any]] = {}
    for entry in entries:
        match entry.event:
            case "token" | "reasoning":
                parts[entry.event].append(json.loads(entry.data)["text"])
                status = "streaming"
            case "snapshot":
                data = json.loads(entry.data)
                status = data["status"]
                parts = {"token": [data["text"]], "reasoning": [data["reasoning"]]}
                calls = {call["id"]: call for call in data.get("calls", ())}
            case "tool_call" | "tool_result":
                data = json.loads(entry.data)
                calls[data["id"]] = data
                status = "streaming"
            case "progress":
                status = "streaming"
            case "done":
                stopped = json.loads(entry.data).get("finish_reason") == STOPPED
                status = "stopped" if stopped else "complete"
            case "error":
                status = "failed"
    text, reasoning = "".join(parts["token"]), "".join(parts["reasoning"])
    return Snapshot(status, text, reasoning, tuple(calls.values()))


def stored(redis: Redis, answer_id: int) -> Snapshot:
    """What the stream of an answer still holds, for synchronous code."""
    items: Any = redis.xrange(key_of(answer_id))
    return fold(map(_entry, items))


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


class _Source(Protocol):
    async def read(self, after: int, wait: float) -> list[Entry]:
        """Entries after a position; if there are none, those that come within `wait` seconds."""

    async def aclose(self) -> None: ...


class _Here:
    """Reads a log that this process writes."""

    def __init__(self, log: AnswerLog) -> None:
        self._log = log

    async def read(self, after: int, wait: float) -> list[Entry]:
        if not (found := self._since(after)) and wait:
            await self._log.changed(wait)
            found = self._since(after)
        return found

    def _since(self, after: int) -> list[Entry]:
        entries = self._log.entries
        if not entries or entries[-1].id <= after:
            return []
        return entries[max(0, after + 1 - entries[0].id) :]

    async def aclose(self) -> None:
        pass


class _Elsewhere:
    """Reads a log that another process writes or has written, over a connection of its own.

    The shared pool is not for this: a connection that waits is lost to everybody else.
    """

    def __init__(self, answer_id: int) -> None:
        self._key = key_of(answer_id)
        # The default socket_timeout is shorter than we wait, and see apps.core.redis.
        self._redis = aioredis.Redis.from_url(
            settings.REDIS_URL, max_connections=1, socket_timeout=None
        )

    async def read(self, after: int, wait: float) -> list[Entry]:
        found: Any = await self._redis.xrange(self._key, f"({after}-0" if after else "-")
        if not found and wait:
            answer = await self._redis.xread({self._key: f"{after}-0"}, block=int(wait * 1000))
            found = _only_stream(answer)
        return [_entry(item) for item in found]

    async def aclose(self) -> None:
        await self._redis.aclose()


async def exists(answer_id: int) -> bool:
    return bool(await async_redis().exists(key_of(answer_id)))


async def follow(
    answer_id: int, after: int | None = None, *, ping: float = PING_SECONDS
) -> AsyncIterator[Entry | None]:
    """The events after a position until the end; None whenever nothing came for `ping` seconds.

    Without a position, or with one that the stream does not know, the first event is a snapshot.
    """
    log = _written_here.get(answer_id)
    source: _Source = _Here(log) if log is not None else _Elsewhere(answer_id)
    try:
        backlog = await source.read(0, 0)
        ended = bool(backlog) and backlog[-1].is_end
        position = after if after is not None and _knows(backlog, after, ended=ended) else None
        if position is None:
            ending = [e for e in backlog if ended and (e.event == "usage" or e.is_end)]
            position = backlog[-1].id if backlog else 0
            yield Entry(position, "snapshot", fold(backlog).as_json())
            for entry in ending:
                yield entry
            if ended:
                return
        while True:
            entries = await source.read(position, ping)
            if not entries:
                yield None
            for entry in entries:
                # A checkpoint repeats what a reader knows, unless he missed what was before it.
                if entry.event != "snapshot" or entry.id != position + 1:
                    yield entry
                position = entry.id
                if entry.is_end:
                    return
    finally:
        await source.aclose()


def _knows(backlog: list[Entry], position: int, *, ended: bool) -> bool:
    if not backlog or (ended and position >= backlog[-1].id):
        return False
    return backlog[0].id - 1 <= position <= backlog[-1].id


def key_of(answer_id: int) -> str:
    """Of the answer's stream in Redis."""
    return f"answer:{answer_id}:events"


def as_json(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))


def _only_stream(answer: Any) -> list[Any]:
    """The entries of the one stream that was asked for, in either protocol's shape."""
    if not answer:
        return []
    if isinstance(answer, dict):
        (batches,) = answer.values()
        return [item for batch in batches for item in batch]
    return list(answer[0][1])


def _entry(item: tuple[bytes, dict[bytes, bytes]]) -> Entry:
    entry_id, fields = item
    return Entry(int(entry_id.split(b"-")[0]), fields[b"e"].decode(), fields[b"d"].decode())
