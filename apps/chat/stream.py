"""The events of an answer: written once, readable from any offset by any process.

They lie in a Redis stream; entry n has the id `n-0`, so that positions are numbers. Readers in the
process that writes are served from its memory, with the same entries and the same numbers, because
asking Redis for each event costs more CPU than all the rest of the way.

A long answer does not grow the stream without end: every CHECKPOINT_EVERY entries a `snapshot` of
the whole text is written and what lies before it is dropped. So the text can always be put together
from what a stream holds, and a reader who fell behind a checkpoint begins anew at it.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self
from weakref import WeakValueDictionary

from django.conf import settings
from redis import Redis
from redis import asyncio as aioredis
from redis.exceptions import RedisError

from apps.core.redis import async_redis

logger = logging.getLogger(__name__)

# Faster than this the eye does not read: what comes within it becomes one event.
COALESCE_SECONDS = 0.03
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

    def as_json(self) -> str:
        return as_json({"status": self.status, "text": self.text, "reasoning": self.reasoning})


def fold(entries: Iterable[Entry]) -> Snapshot:
    """Puts the text together from entries that begin with the first one or a checkpoint."""
    status = "queued"
    parts: dict[str, list[str]] = {"token": [], "reasoning": []}
    for entry in entries:
        match entry.event:
            case "token" | "reasoning":
                parts[entry.event].append(json.loads(entry.data)["text"])
                status = "streaming"
            case "snapshot":
                data = json.loads(entry.data)
                status = data["status"]
                parts = {"token": [data["text"]], "reasoning": [data["reasoning"]]}
            case "progress":
                status = "streaming"
            case "done":
                stopped = json.loads(entry.data).get("finish_reason") == STOPPED
                status = "stopped" if stopped else "complete"
            case "error":
                status = "failed"
    return Snapshot(status, "".join(parts["token"]), "".join(parts["reasoning"]))


def stored(redis: Redis, answer_id: int) -> Snapshot:
    """What the stream of an answer still holds, for synchronous code."""
    items: Any = redis.xrange(_key(answer_id))
    return fold(map(_entry, items))


class AnswerLog:
    """Writes one answer's events.

    async with AnswerLog(answer_id) as log:
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
        self.news = asyncio.Event()
        """Set when there are more entries; each batch replaces it."""
        self._last_id = 0
        self._spoken: dict[str, list[str]] = {"token": [], "reasoning": []}
        self._pending: list[tuple[str, Any]] = []
        self._unwritten: list[Entry] = []
        self._wake = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._flusher: asyncio.Task[None] | None = None
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

    def add(self, event: str, **data: Any) -> None:
        self._pending.append((event, data))
        self._wake.set()

    async def end(self, event: str, **data: Any) -> None:
        """Writes what is left and the end. Nothing may follow."""
        self.add(event, **data)
        await self._flush()
        with suppress(RedisError):
            await async_redis().expire(_key(self.answer_id), FINISHED_EXPIRES_SECONDS)

    async def __aenter__(self) -> Self:
        self._flusher = asyncio.create_task(self._keep_flushing())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._flusher is not None
        self._flusher.cancel()
        with suppress(asyncio.CancelledError):
            await self._flusher

    def _speak(self, event: str, text: str) -> None:
        self._spoken[event].append(text)
        if self._pending and self._pending[-1][0] == event:
            self._pending[-1][1].append(text)
        else:
            self._pending.append((event, [text]))
        self._wake.set()

    async def _keep_flushing(self) -> None:
        while True:
            await self._wake.wait()
            if await self._flush():
                await asyncio.sleep(COALESCE_SECONDS)

    async def _flush(self) -> bool:
        """Writes what is pending; says whether there was text in it."""
        async with self._one_at_a_time:
            return await self._flush_pending()

    async def _flush_pending(self) -> bool:
        self._wake.clear()
        new = [self._next(event, data) for event, data in self._pending]
        self._pending.clear()
        if not new and not self._unwritten:
            return False
        if len(self.entries) + len(new) > CHECKPOINT_EVERY and not (new and new[-1].is_end):
            new.append(Entry(self._take_id(), "snapshot", self._checkpoint()))
        self._unwritten.extend(new)
        try:
            await self._write()
        except RedisError as error:
            logger.warning("Answer %s is not in Redis for now: %s", self.answer_id, error)
        self._publish(new)
        return any(entry.event in SPOKEN for entry in new)

    def _next(self, event: str, data: Any) -> Entry:
        return Entry(
            self._take_id(), event, as_json({"text": "".join(data)} if event in SPOKEN else data)
        )

    def _take_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _checkpoint(self) -> str:
        return Snapshot("streaming", self.text, self.reasoning).as_json()

    async def _write(self) -> None:
        key = _key(self.answer_id)
        redis = async_redis()
        if len(self._unwritten) == 1 and (entry := self._unwritten[0]).id > 1:
            # By far the most frequent case, without what a pipeline costs.
            fields = ("e", entry.event, "d", entry.data)
            await redis.execute_command("XADD", key, f"{entry.id}-0", *fields)  # type: ignore[no-untyped-call]
        else:
            pipeline = redis.pipeline(transaction=False)
            for entry in self._unwritten:
                pipeline.xadd(key, {"e": entry.event, "d": entry.data}, id=f"{entry.id}-0")
                if entry.event == "snapshot":
                    pipeline.xtrim(key, minid=entry.id, approximate=False)
            pipeline.expire(key, UNFINISHED_EXPIRES_SECONDS)
            # An entry that was written before the connection broke is refused the second time.
            await pipeline.execute(raise_on_error=False)
        self._unwritten.clear()

    def _publish(self, new: list[Entry]) -> None:
        self.entries.extend(new)
        if new and new[-1].event == "snapshot":
            self.entries = new[-1:]
        news, self.news = self.news, asyncio.Event()
        news.set()


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
        news = self._log.news
        if not (found := self._since(after)) and wait:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await news.wait()
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
        self._key = _key(answer_id)
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
    return bool(await async_redis().exists(_key(answer_id)))


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


def _key(answer_id: int) -> str:
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
