"""Counts on the wire how many answers a model server is asked for at once.

A relay of bytes between the workbench and the server. Asking the server five times a second what it
does can miss the millisecond in which there was one request too many; this cannot.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

ASKED = b"POST /v1/chat/completions HTTP"
ANSWERED = b"0\r\n\r\n"  # the last chunk of a chunked answer
PIECE = 65536


@dataclass
class Wire:
    """What has been seen. `base_url` is where to send requests to."""

    base_url: str = ""
    now: int = 0
    most: int = 0
    asked: int = 0
    cut: int = 0
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    def _begin(self) -> None:
        self.now += 1
        self.asked += 1
        self.most = max(self.most, self.now)


@asynccontextmanager
async def counted(port: int) -> AsyncIterator[Wire]:
    """Relays to the server on `port` while the block lasts."""
    wire = Wire()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_server = await asyncio.open_connection("127.0.0.1", port)
        answering = [False]

        async def requests() -> None:
            while piece := await reader.read(PIECE):
                if piece.startswith(ASKED):
                    wire._begin()
                    answering[0] = True
                to_server[1].write(piece)

        async def answers() -> None:
            while piece := await to_server[0].read(PIECE):
                if answering[0] and piece.endswith(ANSWERED):
                    wire.now -= 1
                    answering[0] = False
                writer.write(piece)

        ways = [asyncio.ensure_future(requests()), asyncio.ensure_future(answers())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            if answering[0]:  # closed by one of them before the answer's end
                wire.now -= 1
                wire.cut += 1
            to_server[1].close()
            writer.close()

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    host, own_port = server.sockets[0].getsockname()[:2]
    wire.base_url = f"http://{host}:{own_port}/v1"
    try:
        yield wire
    finally:
        server.close()
