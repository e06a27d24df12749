"""The writer of an answer's events: readers in this process see them at once, Redis gets them too.

A long answer does not grow its stream without end: every CHECKPOINT_EVERY events a `snapshot` of
the whole text is written, and what comes before it is dropped.
"""

import asyncio
from dataclasses import asdict
from typing import Any
from weakref import WeakValueDictionary

from apps.chat.streaming import redis_writer
from apps.chat.streaming.events import (
    TEXT_EVENTS,
    Snapshot,
    StreamEvent,
    ToolCallEvent,
    compact_json,
)

# The eye does not read faster: text that comes within this time becomes one event.
COALESCE_SECONDS = 0.04
CHECKPOINT_EVERY = 2000
FINISHED_EXPIRES_SECONDS = 600


class AnswerLog:
    """Writes one answer's events.

    log = AnswerLog(answer_id)
    log.add_token("Hel")
    log.add_token("lo")
    await log.end("done", finish_reason="stop")

    The first token is written at once, later ones together with what comes within
    COALESCE_SECONDS. While Redis is away, readers in this process continue; Redis gets what it
    missed when it is back. Without an ID the log keeps what is written until `open` names it.
    """

    def __init__(self, answer_id: int = 0) -> None:
        self.answer_id = 0
        self.events: list[StreamEvent] = []
        """Since the last checkpoint, which is then the first of them."""
        self.unwritten: list[StreamEvent] = []
        """Events that Redis does not have yet."""
        self._writer = redis_writer.current()
        self._last_id = 0
        self._text: dict[str, list[str]] = {"token": [], "reasoning": []}
        self._calls: dict[int, ToolCallEvent] = {}
        self._pending: list[tuple[str, Any]] = []
        self._last_text_at = 0.0
        self._waiters: list[asyncio.Future[None]] = []
        if answer_id:
            self.open(answer_id)

    def open(self, answer_id: int) -> None:
        """Show readers and Redis what was written, now that the answer is saved."""
        self.answer_id = answer_id
        _local_logs[answer_id] = self
        self.flush()

    @property
    def text(self) -> str:
        return "".join(self._text["token"])

    @property
    def reasoning(self) -> str:
        return "".join(self._text["reasoning"])

    def add_token(self, text: str) -> None:
        self._add_text("token", text)

    def add_reasoning(self, text: str) -> None:
        self._add_text("reasoning", text)

    def add_call(self, event: str, call: ToolCallEvent) -> None:
        """Write a `tool_call` or a `tool_result` event."""
        self._calls[call.id] = call
        self.add(event, **asdict(call))

    def add(self, event: str, **data: Any) -> None:
        self._pending.append((event, data))
        self.flush()

    def add_soon(self, event: str, **data: Any) -> None:
        """Write an event with the next one, or after COALESCE_SECONDS."""
        self._pending.append((event, data))
        self._writer.flush_soon(self, COALESCE_SECONDS)

    async def end(self, event: str, **data: Any) -> None:
        """Write what is pending and the end. Nothing may follow."""
        self.add(event, **data)
        key = redis_writer.stream_key(self.answer_id)
        self._writer.add_command("EXPIRE", key, FINISHED_EXPIRES_SECONDS)
        await self._writer.drain()

    async def wait_for_events(self, seconds: float) -> None:
        """Return when there are more events, or after `seconds`."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._waiters.append(waiter)
        timer = loop.call_later(seconds, _wake, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def flush(self) -> None:
        """Show readers what is pending, and queue it for Redis."""
        if not self._pending or not self.answer_id:
            return
        new = [self._encode(event, data) for event, data in self._pending]
        self._pending.clear()
        if len(self.events) + len(new) > CHECKPOINT_EVERY and not new[-1].is_end:
            new.append(StreamEvent(self._next_id(), "snapshot", self._checkpoint()))
        if any(event.event in TEXT_EVENTS for event in new):
            self._last_text_at = self._writer.now()
        self.unwritten.extend(new)
        self._writer.write_soon(self, COALESCE_SECONDS)
        self.events.extend(new)
        if new[-1].event == "snapshot":
            self.events = new[-1:]
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            _wake(waiter)

    def _add_text(self, event: str, text: str) -> None:
        self._text[event].append(text)
        if self._pending and self._pending[-1][0] == event:
            self._pending[-1][1].append(text)
            return
        self._pending.append((event, [text]))
        if self._writer.now() - self._last_text_at >= COALESCE_SECONDS:
            self.flush()
        else:
            self._writer.flush_soon(self, COALESCE_SECONDS)

    def _encode(self, event: str, data: Any) -> StreamEvent:
        if event in TEXT_EVENTS:
            data = {"text": "".join(data)}
        return StreamEvent(self._next_id(), event, compact_json(data))

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _checkpoint(self) -> str:
        calls = tuple(self._calls.values())
        return Snapshot("streaming", self.text, self.reasoning, calls).as_json()


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


# The logs that this process writes, or that a reader in this process still follows.
_local_logs: WeakValueDictionary[int, AnswerLog] = WeakValueDictionary()


def local_log(answer_id: int) -> AnswerLog | None:
    """Return the log of an answer that this process writes, or has just written."""
    return _local_logs.get(answer_id)
