"""HTTP/1.1 to a model server with as little work per token as possible: a transport for the SDK.

A model server sends every token in a packet of its own, so what one packet costs is what a token
costs. The SDK's default transport parses in Python and passes each piece through four nested
generators; here llhttp (C, by httptools, which uvicorn uses too) parses inside the event loop's
callback, and whoever reads gets all that has arrived since. Measured with eight chats of 50 tokens
a second: 0.25 ms of CPU per token with the default, 0.11 with aiohttp as with this, which brings no
dependency and closes, waits and tries again exactly as said below.

A connection belongs to one answer at a time. Closing an answer before its end closes the
connection at once: that is what frees the slot. A connection that ended well is used again for
IDLE_SECONDS; one that the server closed in that time is noticed and dropped, and should it close in
the very moment of use, the request is sent once more: before the first byte, never after.
"""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, cast

import httptools
import httpx2

# llama-server hangs up after five quiet seconds: a second less, and we seldom meet it doing so.
IDLE_SECONDS = 4.0
# An answer that nobody reads is not taken from the socket any further.
PAUSE_AT_BYTES = 1024 * 1024
# Under this name a response's extensions offer `read() -> bytes`: what has come, b"" at the end.
READ = "workbench_read"
# ... and `read_much() -> bytes`: as that, but MUCH_BYTES at once, for whoever does not watch.
READ_MUCH = "workbench_read_much"
# ... and `left() -> bytes`: what has come and was not read, for whoever reads no further.
LEFT = "workbench_left"
MUCH_BYTES = 64 * 1024


class _Origin(NamedTuple):
    host: str
    port: int
    tls: bool


class Transport(httpx2.AsyncBaseTransport):
    """For one event loop.

    Args:
        gap: seconds a body that has begun may be silent. The request's own read timeout is how
            long its first byte may take.
        quiet: seconds in which comments may be all that comes of a stream of events.
        tls: whose certificates are trusted; asked when the first connection needs it.
    """

    def __init__(self, *, gap: float, quiet: float, tls: Callable[[], ssl.SSLContext]) -> None:
        self._gap, self._quiet = gap, quiet
        self._idle: defaultdict[_Origin, list[_Connection]] = defaultdict(list)
        self._open: set[_Connection] = set()
        self._tls = tls

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request and waits for the head of its answer.

        Raises:
            httpx2.ConnectError, ConnectTimeout: there is no connection to be had.
            httpx2.ReadTimeout, ReadError, RemoteProtocolError: no answer came over it.
        """
        timeout = request.extensions.get("timeout", {})
        origin = _origin_of(request.url)
        data = _as_bytes(request, await request.aread())
        while True:
            connection = self._take(origin)
            is_reused = connection is not None
            if connection is None:
                connection = await self._connect(origin, timeout.get("connect"))
            try:
                head = await connection.ask(data, timeout.get("read"))
            except (httpx2.ReadError, httpx2.RemoteProtocolError):
                connection.close()
                # Older connections have most likely ended as well: a new one is sure.
                if is_reused and connection.is_silent:
                    self._drop_idle(origin)
                    continue
                raise
            except BaseException:
                connection.close()
                raise
            return httpx2.Response(
                head.status,
                headers=head.headers,
                stream=_Body(self, origin, connection),
                request=request,
                extensions={
                    "http_version": b"HTTP/1.1",
                    READ: connection.read,
                    READ_MUCH: connection.read_much,
                    LEFT: connection.left,
                },
            )

    async def aclose(self) -> None:
        for connection in list(self._open):
            connection.close()
        self._idle.clear()
        await asyncio.sleep(0)  # the loop lets go of their sockets in its next turn

    def forget(self, connection: "_Connection") -> None:
        """It has ended, by whomever."""
        self._open.discard(connection)
        for idle in self._idle.values():
            if connection in idle:
                idle.remove(connection)

    def give_back(self, origin: _Origin, connection: "_Connection") -> None:
        """The answer was read to its end, or will not be."""
        if connection.rest():
            self._idle[origin].append(connection)
        else:
            connection.close()

    def _take(self, origin: _Origin) -> "_Connection | None":
        """The connection that was used last: the others may then grow old and go."""
        idle = self._idle[origin]
        return idle.pop() if idle else None

    def _drop_idle(self, origin: _Origin) -> None:
        for connection in self._idle.pop(origin, []):
            connection.close()

    async def _connect(self, origin: _Origin, seconds: float | None) -> "_Connection":
        context = self._tls() if origin.tls else None
        try:
            async with asyncio.timeout(seconds):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(self, self._gap, self._quiet),
                    origin.host,
                    origin.port,
                    ssl=context,
                )
        except TimeoutError as error:
            raise httpx2.ConnectTimeout("No connection in time") from error
        except (OSError, OverflowError, ValueError) as error:  # a host or port that is none
            raise httpx2.ConnectError(str(error)) from error
        self._open.add(connection)
        return connection


class _Head(NamedTuple):
    status: int
    headers: list[tuple[bytes, bytes]]


class _Connection(asyncio.Protocol):
    """One connection and the answer that is coming over it."""

    def __init__(self, owner: Transport, gap: float, quiet: float) -> None:
        self._owner = owner
        self._gap, self._quiet = gap, quiet
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._has_head = self._is_complete = False
        self._keeps_alive = self._ends_with_connection = False
        self._body: list[bytes] = []
        self._size = 0
        self._is_paused = False
        self._is_patient = False
        self._error: Exception | None = None
        self._said_at = self._loop.time()
        self.is_silent = True
        """Not a byte has come in answer to the request."""

    # --- What the transport does with it ---------------------------------------------------

    async def ask(self, data: bytes, seconds: float | None) -> _Head:
        """Sends a request; so many seconds may pass until the head of the answer is here."""
        self._stop_timer()
        self._begin()
        if self._transport is None or self._transport.is_closing():
            raise httpx2.ReadError("The connection has ended")
        self._transport.write(data)
        while not self._has_head:
            await self._wait(seconds)
        return _Head(self._parser.get_status_code(), self._headers)

    async def read(self) -> bytes:
        """All of the body that has come since the last time; b"" at its end."""
        while not self._body:
            if self._is_complete:
                return b""
            await self._wait(self._left_to_wait())
        data = self.left()
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    async def read_much(self) -> bytes:
        """As `read`, when much has come, or all there is: few turns of the loop, however many
        packets it came in."""
        self._is_patient = True
        try:
            while not self._has_much:
                await self._wait(self._left_to_wait())
        finally:
            self._is_patient = False
        return await self.read()

    def left(self) -> bytes:
        """What has come of the body since the last time. Does not wait."""
        data = b"".join(self._body)
        self._body.clear()
        self._size = 0
        return data

    @property
    def _has_much(self) -> bool:
        return self._is_complete or self._size >= MUCH_BYTES or self._error is not None

    def rest(self) -> bool:
        """Makes it ready for another request; False where there can be none."""
        if (
            not self._is_complete
            or self._error is not None
            or self._transport is None
            or self._transport.is_closing()
            or not self._keeps_alive
        ):
            return False
        self._stop_timer()
        self._timer = self._loop.call_later(IDLE_SECONDS, self.close)
        return True

    def close(self) -> None:
        """Now, without waiting for what has been written or is still to come."""
        self._stop_timer()
        self._owner.forget(self)
        if self._transport is not None:
            self._transport.abort()

    # --- Waiting, with one timer for many waits --------------------------------------------

    async def _wait(self, seconds: float | None) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        if seconds is not None:
            self._deadline = self._loop.time() + seconds
            if self._timer is None or self._timer_at > self._deadline:
                self._set_timer()
        try:
            await self._waiter
        finally:
            self._waiter = None
        if self._error is not None and not self._body:
            raise self._error

    def _left_to_wait(self) -> float:
        return min(self._gap, max(0.0, self._said_at + self._quiet - self._loop.time()))

    def _set_timer(self) -> None:
        self._stop_timer()
        self._timer_at = self._deadline
        self._timer = self._loop.call_at(self._deadline, self._look_at_the_clock)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_at_the_clock(self) -> None:
        self._timer = None
        if self._waiter is None:  # whoever reads is busy with what he has
            return
        if self._loop.time() < self._deadline:
            self._set_timer()
        else:
            self._fail(httpx2.ReadTimeout("Nothing came in time"))

    def _fail(self, error: Exception) -> None:
        if self._error is None:
            self._error = error
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- What the event loop tells it ------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._is_complete:  # nobody asked for anything
            self.close()
            return
        self.is_silent = False
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(httpx2.RemoteProtocolError(str(error)))
            return
        if self._size > PAUSE_AT_BYTES and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()
        if self._is_patient and not self._has_much:
            self._deadline = self._loop.time() + self._left_to_wait()
        else:
            self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._stop_timer()
        self._owner.forget(self)
        self._transport = None
        if self._has_head and self._ends_with_connection and error is None:
            self._is_complete = True
            self._wake()
        elif not self._is_complete:
            broken = httpx2.ReadError if error else httpx2.RemoteProtocolError
            self._fail(broken(str(error or "The server closed the connection")))

    # --- What the parser finds -------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self._parser.get_status_code() < 200:  # "100 Continue": the answer is still to come
            self._headers.clear()
            return
        self._has_head = True
        self._said_at = self._loop.time()
        names = {name.lower() for name, _ in self._headers}
        self._ends_with_connection = names.isdisjoint({b"content-length", b"transfer-encoding"})

    def on_body(self, data: bytes) -> None:
        if not data.startswith(b":") or b"data:" in data:  # a comment says only that it is there
            self._said_at = self._loop.time()
        self._body.append(data)
        self._size += len(data)

    def on_message_complete(self) -> None:
        self._is_complete = self._has_head
        self._keeps_alive = self._parser.should_keep_alive()  # later it no longer knows


class _Body(httpx2.AsyncByteStream):
    """The rest of an answer, in the pieces in which it arrives."""

    def __init__(self, owner: Transport, origin: _Origin, connection: _Connection) -> None:
        self._owner = owner
        self._origin = origin
        self._connection: _Connection | None = connection

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._connection is not None and (data := await self._connection.read()):
            yield data

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._owner.give_back(self._origin, connection)


def _origin_of(url: httpx2.URL) -> _Origin:
    if url.scheme not in {"http", "https"}:
        raise httpx2.UnsupportedProtocol(
            f"{url.scheme}:// is not supported. Use http:// or https://"
        )
    tls = url.scheme == "https"
    return _Origin(url.host, url.port or (443 if tls else 80), tls)


def _as_bytes(request: httpx2.Request, content: bytes) -> bytes:
    """The whole request as it travels."""
    lines = [b"%s %s HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    lines += [b"%s: %s" % header for header in request.headers.raw]
    head = b"\r\n".join(lines)
    if not head.count(b"\r") == head.count(b"\n") == len(lines) - 1:
        raise httpx2.LocalProtocolError("A header with a line break in it is not sent")
    return head + b"\r\n\r\n" + content
