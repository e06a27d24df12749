"""A process that holds permits, to be killed: python -m tests.faults.holder PORT LANE TASKS SECONDS

Each task takes a permit, is a request in flight at the gauge on PORT for so many seconds, gives the
permit back, and so on for ever. A row whose slot a person takes starts again, as in the pump.
"""

import asyncio
import sys

import django

django.setup()

from redis.exceptions import RedisError  # noqa: E402 - Django first

from apps.llm.permits import Lane, SlotTaken  # noqa: E402
from apps.servers.models import Kind, Server  # noqa: E402
from apps.servers.services import hold_slot  # noqa: E402
from tests.faults.gauge import SERVER, SLOTS  # noqa: E402


async def in_flight(port: int, seconds: float) -> None:
    """As a request is at a model server: its end is known there before it is known here."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        await asyncio.sleep(seconds)  # as long as the model takes
    finally:
        writer.write_eof()
        await asyncio.shield(reader.read())
        writer.close()


async def hold(port: int, lane: Lane, seconds: float) -> None:
    server = Server(pk=SERVER, kind=Kind.LLAMA_SERVER, stored_facts={"slots": SLOTS})
    while True:
        try:
            async with hold_slot(server, lane=lane):
                await in_flight(port, seconds)
        except SlotTaken:
            continue
        except (RedisError, OSError):
            await asyncio.sleep(0.2)  # the pump, too, asks again after a pause


async def main(port: int, lane: Lane, tasks: int, seconds: float) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(tasks):
            group.create_task(hold(port, lane, seconds))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Lane(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
