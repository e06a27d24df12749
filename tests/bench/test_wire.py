"""What the relay of `bench.batch.occupancy` counts, with a server that says when it does what."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.batch.wire import End, Wire, counted
from tests.waiting import until

BODY = b'{"seed": 1}'
ASK = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(BODY)
) + BODY
# As llama-server's: read by its end alone, the head is an answer.
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nkeep-alive: timeout=5, max=100\r\n\r\n"
WORD, LAST = b"4\r\nword\r\n", (b"0\r\n", b"\r\n")


class Peer:
    """The server's end of the connections, in the order in which they came."""

    def __init__(self) -> None:
        self.came: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = (
            asyncio.Queue()
        )

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.came.put((reader, writer))


@asynccontextmanager
async def relayed() -> AsyncIterator[tuple[Wire, Peer]]:
    peer = Peer()
    async with await asyncio.start_server(peer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(150), counted(port) as wire:
            yield wire, peer


async def connect(wire: Wire) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    port = int(wire.base_url.removesuffix("/v1").rsplit(":", 1)[1])
    return await asyncio.open_connection("127.0.0.1", port)


async def until_open(wire: Wire, now: int) -> None:
    await until(lambda: wire.now == now)


async def test_an_answer_lasts_to_its_end_however_it_is_cut() -> None:
    async with relayed() as (wire, peer):
        reader, writer = await connect(wire)
        for turn in (1, 2):  # over the same connection
            writer.write(ASK)
            if turn == 1:
                asked, said = await peer.came.get()
            await asked.readexactly(len(ASK))
            for piece in (HEAD, WORD, *LAST):
                assert wire.now == 1
                said.write(piece)
                await reader.readexactly(len(piece))
            assert wire.now == 0
        writer.close()
        said.close()
    assert (wire.most, wire.ends(), wire.answered_again()) == (1, {End.ANSWERED: 2}, 1)


async def test_what_was_not_answered_to_the_end() -> None:
    async with relayed() as (wire, peer):
        for left_by_us in (True, False):
            reader, writer = await connect(wire)
            writer.write(ASK)
            asked, said = await peer.came.get()
            await asked.readexactly(len(ASK))
            said.write(HEAD)
            await reader.readexactly(len(HEAD))
            (writer if left_by_us else said).close()
            await until_open(wire, 0)
            (said if left_by_us else writer).close()
        reader, writer = await connect(wire)
        writer.write(ASK)
        asked, said = await peer.came.get()
        await until_open(wire, 1)
        said.close()
        await until_open(wire, 0)
        writer.close()
    assert wire.ends() == {End.LEFT: 1, End.BROKEN: 1, End.LATE: 1}
