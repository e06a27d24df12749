"""The events of an answer: written once, readable from any position by any process.

They lie in a Redis stream. Event n has the ID `n-0`, so positions are numbers. Readers in the
process that writes are served from its memory (`event_log`), with the same events and the same
numbers: asking Redis for each event costs more CPU than everything else on the way.

The text can always be put together from what a stream holds. It begins with the first event or with
a checkpoint, where a reader who fell behind starts over.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Protocol

from apps.chat.streaming.event_log import AnswerLog, local_log
from apps.chat.streaming.events import Snapshot, StreamEvent, replay
from apps.chat.streaming.redis_writer import stream_key
from apps.runtime.redis import async_redis, own_connection, sync_redis

PING_SECONDS = 15.0
# What the answer waits for. No snapshot holds it, and the next event may be minutes away.
WAITING = frozenset({"queued", "loading"})


def partial_snapshot(answer_id: int) -> Snapshot:
    """Return what the stream of an unfinished answer holds. Synchronous."""
    items: Any = sync_redis().xrange(stream_key(answer_id))
    return replay(map(_decode, items))


async def exists(answer_id: int) -> bool:
    return bool(await async_redis().exists(stream_key(answer_id)))


class _Reader(Protocol):
    async def read(self, after: int, wait: float) -> list[StreamEvent]:
        """Return the events after a position, or those that come within `wait` seconds."""

    async def aclose(self) -> None: ...


class _LocalReader:
    """Reads a log that this process writes."""

    def __init__(self, log: AnswerLog) -> None:
        self._log = log

    async def read(self, after: int, wait: float) -> list[StreamEvent]:
        if not (events := self._since(after)) and wait:
            await self._log.wait_for_events(wait)
            events = self._since(after)
        return events

    def _since(self, after: int) -> list[StreamEvent]:
        events = self._log.events
        if not events or events[-1].id <= after:
            return []
        return events[max(0, after + 1 - events[0].id) :]

    async def aclose(self) -> None:
        pass


class _RedisReader:
    """Reads a log that another process writes or has written, over a connection of its own.

    The shared pool is not for this: a connection that waits is lost to everybody else.
    """

    def __init__(self, answer_id: int) -> None:
        self._key = stream_key(answer_id)
        self._redis = own_connection()

    async def read(self, after: int, wait: float) -> list[StreamEvent]:
        items: Any = await self._redis.xrange(self._key, f"({after}-0" if after else "-")
        if not items and wait:
            reply = await self._redis.xread({self._key: f"{after}-0"}, block=int(wait * 1000))
            items = _items_of_only_stream(reply)
        return [_decode(item) for item in items]

    async def aclose(self) -> None:
        await self._redis.aclose()


async def follow(
    answer_id: int, after: int | None = None, *, ping: float = PING_SECONDS
) -> AsyncIterator[StreamEvent | None]:
    """Yield the events after a position until the end; None whenever `ping` seconds were silent.

    Without a position, or with one that the stream does not know, the first event is a snapshot.
    After it comes what the answer waits for, if it waits.
    """
    async with aclosing(follow_batches(answer_id, after, ping=ping)) as batches:
        async for batch in batches:
            if not batch:
                yield None
            for event in batch:
                yield event


async def follow_batches(
    answer_id: int, after: int | None = None, *, ping: float = PING_SECONDS
) -> AsyncGenerator[list[StreamEvent], None]:
    """Yield as `follow` the events that are there together; [] where that yields None."""
    log = local_log(answer_id)
    reader: _Reader = _LocalReader(log) if log is not None else _RedisReader(answer_id)
    try:
        backlog = await reader.read(0, 0)
        ended = bool(backlog) and backlog[-1].is_end
        position = after if after is not None and _has(backlog, after, ended=ended) else None
        if position is None:
            position = backlog[-1].id if backlog else 0
            snapshot = StreamEvent(position, "snapshot", replay(backlog).as_json())
            last = [event for event in backlog if event.event == "usage" or event.is_end]
            waiting = [event for event in backlog[-1:] if event.event in WAITING]
            yield [snapshot, *(last if ended else waiting)]
            if ended:
                return
        while True:
            events = await reader.read(position, ping)
            batch = []
            for event in events:
                # A checkpoint repeats what a reader knows, unless they missed what came before.
                if event.event != "snapshot" or event.id != position + 1:
                    batch.append(event)
                position = event.id
            if batch or not events:
                yield batch
            if events and events[-1].is_end:
                return
    finally:
        await reader.aclose()


def _has(backlog: list[StreamEvent], position: int, *, ended: bool) -> bool:
    if not backlog or (ended and position >= backlog[-1].id):
        return False
    return backlog[0].id - 1 <= position <= backlog[-1].id


def _items_of_only_stream(reply: Any) -> list[Any]:
    """Return the items of the one stream that was read, in either protocol's shape."""
    if not reply:
        return []
    if isinstance(reply, dict):
        (batches,) = reply.values()
        return [item for batch in batches for item in batch]
    return list(reply[0][1])


def _decode(item: tuple[bytes, dict[bytes, bytes]]) -> StreamEvent:
    event_id, fields = item
    return StreamEvent(int(event_id.split(b"-")[0]), fields[b"e"].decode(), fields[b"d"].decode())
