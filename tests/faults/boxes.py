"""Model servers that can be killed, with their rows in the database, and the pumps of a worker."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from apps.batch.pump_pool import PumpPool
from apps.servers.models import Server
from tests.faults.plant import Group
from tests.llama_process import free_port
from tests.waiting import wait_until

SLOTS = 2


class Box:
    """A model server that can be killed, and its row in the database."""

    def __init__(self, name: str, folder: Path) -> None:
        self.port = port = free_port()
        self.server = Server(name=name, base_url=f"http://127.0.0.1:{port}/v1")
        command = [sys.executable, "-m", "tests.faults.model_server"]
        events, log = folder / name, folder / f"{name}.log"
        self.process = Group([*command, str(port), str(events), str(SLOTS)], {}, log)

    def start(self) -> None:
        self.process.start()
        wait_until(self._listens, what="the model server's start")

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


MakeBox = Callable[[str], Box]


@contextmanager
def running_boxes(folder: Path) -> Iterator[MakeBox]:
    """Yield a function that starts and stores a box; all are killed in the end."""
    boxes: list[Box] = []

    def make(name: str) -> Box:
        boxes.append(box := Box(name, folder))
        box.start()
        box.server.save()
        return box

    try:
        yield make
    finally:
        for box in boxes:
            box.process.kill()


@asynccontextmanager
async def working() -> AsyncIterator[None]:
    """Run the pumps of a worker while the block lasts."""
    stop = asyncio.Event()
    pumps = PumpPool(stop.is_set)
    task = asyncio.create_task(pumps.run())
    try:
        yield
    finally:
        stop.set()
        pumps.wake()
        async with asyncio.timeout(150):
            await task
