"""The events of an answer: written once, readable from any offset by any process.

They lie in a Redis stream; entry n has the id `n-0`, so that positions are numbers. Readers in the
process that writes are served from its memory (`answer_log`), with the same entries and the same
numbers, because asking Redis for each event costs more CPU than all the rest of the way.

The text can always be put together from what a stream holds: it begins with the first entry or with
a checkpoint, at which a reader who fell behind it begins anew.
"""

from collections.abc import AsyncIterator
from typing import Any, Protocol

from django.conf import settings
from redis import Redis
from redis import asyncio as aioredis

from apps.chat.answering import event_log
from apps.chat.answering.event_log import AnswerLog, key_of
from apps.chat.answering.events import Entry, Snapshot, fold
from apps.runtime.redis import async_redis

PING_SECONDS = 15.0


def stored(redis: Redis, answer_id: int) -> Snapshot:
    """What the stream of an answer still holds, for synchronous code."""
    items: Any = redis.xrange(key_of(answer_id))
    return fold(map(_entry, items))


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
        # The default socket_timeout is shorter than we wait, and see apps.runtime.redis.
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
    log = event_log.here(answer_id)
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
