"""A network between a browser and the workbench, which can be cut or go silent."""

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self


class Wire:
    """Passes bytes on between a port of its own and another one.

    with Wire(8000) as wire:
        page.goto(wire.url)
        wire.cut()     # connections break, new ones are refused
        wire.mend()
        wire.silence() # connections stay, and carry nothing any more; new ones work
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._open: set[asyncio.StreamWriter] = set()
        self._silent: set[asyncio.StreamWriter] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._do(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self._port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cut()
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        self._do(self._cut())

    def mend(self) -> None:
        self._server = self._do(asyncio.start_server(self._serve, "127.0.0.1", self._port))

    def silence(self) -> None:
        self._loop.call_soon_threadsafe(self._silent.update, set(self._open))

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _cut(self) -> None:
        self._server.close()
        for writer in list(self._open):
            writer.transport.abort()

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if tasks:
            await asyncio.wait(tasks)

    async def _serve(
        self, from_browser: asyncio.StreamReader, to_browser: asyncio.StreamWriter
    ) -> None:
        self._open.add(to_browser)
        from_workbench, to_workbench = await asyncio.open_connection("127.0.0.1", self._to)
        self._open.add(to_workbench)
        there = self._pass_on(from_browser, to_workbench)
        back = self._pass_on(from_workbench, to_browser)
        try:
            await asyncio.gather(there, back)
        finally:
            self._open -= {to_browser, to_workbench}
            self._silent -= {to_browser, to_workbench}

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                if writer not in self._silent:
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass
        writer.close()
