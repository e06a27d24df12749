"""Counts on the wire how many answers a model server is asked for at once, and how each ended.

A relay of bytes between the workbench and the server. Asking the server five times a second what it
does can miss the millisecond in which there was one request too many; this cannot. What the bytes
mean is left to llhttp: where an answer ends cannot be seen from the packets it comes in.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum

import httptools

PATH = b"/v1/chat/completions"
PIECE = 65536


class End(StrEnum):
    """What became of a request."""

    ANSWERED = "answered to the end"
    REFUSED = "answered with an error"
    LATE = "came over a connection that the server had closed just before: it never saw them"
    BROKEN = "closed by the server amid the answer"
    LEFT = "closed by the workbench before the answer's end"


@dataclass(eq=False)
class Request:
    body: bytes = b""
    heard: bool = False
    """Whether a byte of its answer has come."""
    end: End | None = None
    """None: the relay ended first."""


@dataclass
class Wire:
    """What has been seen. `base_url` is where to send requests to."""

    base_url: str = ""
    now: int = 0
    most: int = 0
    requests: list[Request] = field(default_factory=list)

    def ends(self) -> Counter[End | None]:
        return Counter(request.end for request in self.requests)

    def answered_again(self) -> int:
        """Answers to a request that was answered before, to the byte: rows differ in their seed."""
        answered = [request.body for request in self.requests if request.end is End.ANSWERED]
        return len(answered) - len(set(answered))


class _Connection:
    """One between the workbench and the server, read from what passes."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._now: Request | None = None
        self._url = b""
        self._asked = httptools.HttpRequestParser(self)
        self._answers = httptools.HttpResponseParser(_AnswerEnds(self))
        self._server_has_gone = False

    def asks(self, data: bytes) -> None:
        self._asked.feed_data(data)

    def answers(self, data: bytes) -> None:
        if self._now is not None:
            self._now.heard = True
        self._answers.feed_data(data)

    def server_has_gone(self) -> None:
        self._server_has_gone = True
        self.over(End.BROKEN if self._now is not None and self._now.heard else End.LATE)

    def answered(self) -> None:
        self.over(End.ANSWERED if self._answers.get_status_code() == 200 else End.REFUSED)

    def over(self, how: End | None) -> None:
        if self._now is not None:
            self._wire.now -= 1
            self._now.end = how
            self._now = None

    # --- What llhttp finds in the requests -----------------------------------

    def on_message_begin(self) -> None:
        self._url = b""

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_headers_complete(self) -> None:
        if self._url != PATH:
            return
        request = Request()
        self._wire.requests.append(request)
        if self._server_has_gone:
            request.end = End.LATE
            return
        self._now = request
        self._wire.now += 1
        self._wire.most = max(self._wire.most, self._wire.now)

    def on_body(self, data: bytes) -> None:
        if self._now is not None:
            self._now.body += data


@dataclass(frozen=True)
class _AnswerEnds:
    """What llhttp finds in the answers."""

    connection: _Connection

    def on_message_complete(self) -> None:
        self.connection.answered()


@asynccontextmanager
async def counted(port: int) -> AsyncIterator[Wire]:
    """Relays to the server on `port` while the block lasts."""
    wire = Wire()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(wire)
        from_server, to_server = await asyncio.open_connection("127.0.0.1", port)

        async def requests() -> None:
            with suppress(OSError):
                while piece := await reader.read(PIECE):
                    connection.asks(piece)
                    to_server.write(piece)
            connection.over(End.LEFT)
            to_server.close()

        async def answers() -> None:
            with suppress(OSError):
                while piece := await from_server.read(PIECE):
                    connection.answers(piece)
                    writer.write(piece)
            connection.server_has_gone()
            writer.close()

        try:
            await asyncio.gather(requests(), answers())
        finally:
            connection.over(None)
            to_server.close()
            writer.close()

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    host, own_port = server.sockets[0].getsockname()[:2]
    wire.base_url = f"http://{host}:{own_port}/v1"
    try:
        yield wire
    finally:
        server.close()
