"""A relay in front of a server: passes every byte on, and counts what is in flight."""

import asyncio
import json
import re
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from tests.llama_process import free_port

COUNTED = re.compile(rb"^POST \S+/(?:chat/completions|embeddings) ")
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
LAST = b"0\r\n\r\n"  # the chunk of no bytes
CONNECTION = re.compile(rb"(?i)\r\n(?:connection|keep-alive):[^\r]*")


@dataclass
class Counts:
    """What went through, for chat and embeddings, by model."""

    asked: list[str] = field(default_factory=list)
    """The model of each request, in order."""
    in_flight: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)
    """Most requests in flight at once."""

    @property
    def switches(self) -> int:
        """How often a request was for another model than the one before it."""
        return sum(a != b for a, b in zip(self.asked, self.asked[1:], strict=False))


class Relay:
    """Runs in a thread while the `with` block lasts. One request for each connection."""

    def __init__(self, port: int) -> None:
        self.port = free_port()
        self._to = port
        self.counts = Counts()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()

    def forget(self) -> Counts:
        """Count from zero again, and return the counts that will be filled from now on."""
        self.counts = Counts()
        return self.counts

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with await asyncio.start_server(self._serve, "127.0.0.1", self.port):
            self._ready.set()
            await self._stop.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passed = _Passed(self.counts)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                length = LENGTH.search(head)
                body = await reader.readexactly(int(length[1])) if length else b""
                if COUNTED.match(head):
                    passed.begin(str(json.loads(body).get("model")))
                await self._pass_on(head, body, reader, writer, passed)
            finally:
                passed.end()
                writer.close()

    async def _pass_on(
        self,
        head: bytes,
        body: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        passed: "_Passed",
    ) -> None:
        upstream, upstream_writer = await asyncio.open_connection("127.0.0.1", self._to)
        try:
            closing = CONNECTION.sub(b"", head).replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
            upstream_writer.write(closing + body)
            answer = asyncio.create_task(_copy(upstream, writer, passed))
            gone = asyncio.create_task(reader.read())
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            for task in (answer, gone):
                task.cancel()
                with suppress(asyncio.CancelledError, OSError):
                    await task
        finally:
            upstream_writer.close()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)


class _Passed:
    """One request on its way; it has ended when its last words have come, not its connection."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._model: str | None = None

    def begin(self, model: str) -> None:
        counts, self._model = self._counts, model
        counts.asked.append(model)
        counts.in_flight[model] += 1
        counts.most[model] = max(counts.most[model], counts.in_flight[model])

    def end(self) -> None:
        if self._model is not None:
            self._counts.in_flight[self._model] -= 1
            self._model = None


async def _copy(
    upstream: asyncio.StreamReader, writer: asyncio.StreamWriter, passed: _Passed
) -> None:
    while data := await upstream.read(65_536):
        if data.endswith(LAST) or b"data: [DONE]" in data:
            passed.end()
        writer.write(data)
        await writer.drain()
