"""The log file of all children: time, name of the process, line."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

FORMAT = "%(asctime)s %(name)-15s %(message)s"
# Six files of 5 MB: weeks of ordinary use, and never a full disk.
FILE_BYTES = 5_000_000
OLD_FILES = 5
CHUNK_BYTES = 65_536


class ProcessLog:
    def __init__(self, path: Path, *, file_bytes: int = FILE_BYTES) -> None:
        self.path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._handler = RotatingFileHandler(
            path, maxBytes=file_bytes, backupCount=OLD_FILES, encoding="utf-8"
        )
        self._handler.setFormatter(logging.Formatter(FORMAT))
        # A full disk must not write a traceback per line to the terminal.
        self._handler.handleError = lambda record: None  # type: ignore[method-assign]

    def write(self, process: str, line: str) -> None:
        self._handler.handle(
            logging.LogRecord(process, logging.INFO, "", 0, line, args=None, exc_info=None)
        )

    def close(self) -> None:
        self._handler.close()


@contextlib.asynccontextmanager
async def output_pipe() -> AsyncIterator[tuple[int, asyncio.StreamReader]]:
    """Yield the write end of a pipe for a child, and a reader of its output.

    asyncio's own pipes do not report the end of a child while a grandchild holds the pipe open.
    """
    read_end, write_end = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb", buffering=0)
    )
    try:
        yield write_end, reader
    finally:
        transport.close()


async def lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """Yield the lines of a stream until its end; lines longer than a chunk come in pieces."""
    rest = b""
    while chunk := await stream.read(CHUNK_BYTES):
        *complete, rest = (rest + chunk).split(b"\n")
        for line in complete:
            yield _text(line)
        if len(rest) >= CHUNK_BYTES:
            yield _text(rest)
            rest = b""
    if rest:
        yield _text(rest)


def _text(line: bytes) -> str:
    """Decode a line and replace what is not printable: escape sequences would act on a terminal."""
    text = line.decode("utf-8", errors="replace").rstrip("\r")
    return "".join(c if c.isprintable() or c == "\t" else "?" for c in text)
