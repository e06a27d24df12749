"""The events of an answer with its text as HTML: what a page shows while the answer is written.

A reader starts over with every connection: finished blocks are the same however often they are
made, so a page that has some keeps them. The text is rendered once per reader, when new text comes
and no more often than MAX_SHARE of a core allows; who follows the plain events costs none of it.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import asdict
from typing import Any

from apps.chat.answering import sse
from apps.chat.knowledge import citations
from apps.chat.models import Message
from apps.chat.streaming.events import Snapshot, StreamEvent, compact_json
from apps.chat.templatetags import json_tree
from apps.core import quotas
from apps.core.text.html_changes import update
from apps.core.text.live_markdown import LiveMarkdown

MAX_SHARE = 0.05
MAX_PAUSE_SECONDS = 1.0
# What takes longer than a millisecond to render is rendered beside the event loop.
THREAD_CHARACTERS = 2000
THOUGHT = "reasoning"


async def body(answer: Message, held: quotas.hold) -> AsyncIterator[bytes]:
    """Stream the events; `held` is the reserved stream, released at the end."""
    with held:
        yield b"retry: %d\n\n" % sse.RETRY_MS
        async for batch in events(answer):
            yield b"".join(map(sse.encode, batch)) or sse.PING


async def events(answer: Message) -> AsyncIterator[list[StreamEvent]]:
    """Yield the events from a snapshot on, with `typeset` events in place of pieces of text."""
    typesetter = Typesetter()
    async with aclosing(sse.events(answer)) as batches:  # type: ignore[type-var]
        coming: asyncio.Task[list[StreamEvent]] | None = None
        try:
            while True:
                if coming is None:
                    coming = asyncio.ensure_future(anext(batches))
                done, _ = await asyncio.wait([coming], timeout=typesetter.due_in())
                if not done:
                    yield await typesetter.render()
                    continue
                try:
                    batch = coming.result()
                except StopAsyncIteration:
                    return
                coming = None
                found = [told for event in batch for told in await typesetter.add(event)]
                if typesetter.due_in() == 0:
                    found += await typesetter.render()
                if found or not batch:
                    yield found
        finally:
            if coming is not None:
                coming.cancel()
                with suppress(asyncio.CancelledError, StopAsyncIteration):
                    await coming


class _Part:
    """A text that is rendered by itself: between two calls, or the thought."""

    def __init__(self, name: str | int) -> None:
        self.name = name
        self.live = LiveMarkdown()
        self._pieces: list[str] = []
        self._finished = 0
        self._open: list[str] = []
        """As they were sent."""

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self.live.add(text)

    async def render(self, *, is_end: bool = False) -> list[StreamEvent]:
        if self.live.open_characters > THREAD_CHARACTERS:
            await asyncio.to_thread(self.live.render)
        else:
            self.live.render()
        if is_end:
            self.live.finish()
        blocks, first = self.live.blocks, self._finished
        told = update(self._open, [*blocks[first:], *self.live.open], first)
        self._finished, self._open = len(blocks), list(self.live.open)
        if told is None:
            return []
        return [_event("typeset", part=self.name, finished=len(blocks), **told.as_dict())]

    @property
    def is_exact(self) -> bool:
        """True if the saved text will be shown as the same HTML."""
        has_marks = citations.MARK.search(self.text) is not None
        return self.live.is_exact and not has_marks and json_tree.parse(self.text) is None


class Typesetter:
    """Makes `typeset` events of the pieces of an answer's text."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._thought = _Part(THOUGHT)
        self._parts = [_Part(0)]
        self._calls: set[int] = set()
        self._changed: dict[_Part, None] = {}
        self._next = 0.0

    def due_in(self) -> float | None:
        """Return the seconds until the text is to be rendered; None if nothing is new."""
        return max(0.0, self._next - time.monotonic()) if self._changed else None

    async def add(self, event: StreamEvent) -> list[StreamEvent]:
        """Take an event in; return what can be told of it at once, in its order."""
        match event.event:
            case "token":
                self._write(self._parts[-1], json.loads(event.data)["text"])
                return []
            case "reasoning":
                self._write(self._thought, json.loads(event.data)["text"])
                return []
            case "snapshot":
                return await self._restart(Snapshot.from_json(event.data))
            case "tool_call" | "tool_result":
                call = json.loads(event.data)
                return [*await self._begin_call(call["id"]), _event(event.event, **call)]
            case "done" | "error":
                return await self._finish(event)
        return [event]

    async def render(self, *, is_end: bool = False) -> list[StreamEvent]:
        """Return the changes of what is shown."""
        began = time.perf_counter()
        changed, self._changed = self._changed, {}
        found = [told for part in changed for told in await part.render(is_end=is_end)]
        pause = (time.perf_counter() - began) / MAX_SHARE
        self._next = time.monotonic() + min(pause, MAX_PAUSE_SECONDS)
        return found

    def _write(self, part: _Part, text: str) -> None:
        part.add(text)
        self._changed[part] = None

    async def _restart(self, snapshot: Snapshot) -> list[StreamEvent]:
        self._start()
        found = [_event("snapshot", status=snapshot.status)]
        if snapshot.reasoning:
            self._write(self._thought, snapshot.reasoning)
        at = 0
        for call in snapshot.calls:
            if text := snapshot.text[at : call.at]:
                self._write(self._parts[-1], text)
            at = max(at, call.at)
            found += await self._begin_call(call.id)
            found.append(_event("tool_call", **asdict(call)))
        if text := snapshot.text[at:]:
            self._write(self._parts[-1], text)
        return [*found, *await self.render()]

    async def _begin_call(self, call: int) -> list[StreamEvent]:
        """End the text before a call that is new. What follows it is a part of its own."""
        if call in self._calls:
            return []
        self._calls.add(call)
        part = self._parts[-1]
        self._changed[part] = None
        if len(self._parts) == 1 or part.text.strip():
            self._parts.append(_Part(len(self._parts)))
        return await self.render(is_end=True)

    async def _finish(self, event: StreamEvent) -> list[StreamEvent]:
        self._changed = dict.fromkeys([self._thought, *self._parts])
        found = await self.render(is_end=True)
        exact = self._thought.live.is_exact and all(part.is_exact for part in self._parts)
        data = json.loads(event.data) | {"exact": exact}
        return [*found, _event(event.event, **data)]


def _event(name: str, /, **data: Any) -> StreamEvent:
    return StreamEvent(0, name, compact_json(data))
