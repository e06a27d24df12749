"""Stands in front of a real llama.cpp and passes its tokens on at a given pace.

Run as `python -m bench.paced_relay PORT SERVER_PORT MILLISECONDS`. A tiny model writes a token in
0.2 ms; behind this a slot is as busy as with a model that people use, and costs no CPU.
"""

import asyncio
import sys
from contextlib import suppress

EVENT = b"data: "


async def pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pace_seconds: float
) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(4096):
            await asyncio.sleep(pace_seconds * data.count(EVENT))
            writer.write(data)
            await writer.drain()
    writer.close()


async def main(port: int, server_port: int, pace_seconds: float) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, to_upstream = await asyncio.open_connection("127.0.0.1", server_port)
        async with asyncio.TaskGroup() as group:
            group.create_task(pass_on(reader, to_upstream, 0.0))
            group.create_task(pass_on(upstream, writer, pace_seconds))

    async with await asyncio.start_server(serve, "127.0.0.1", port) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) / 1000))
