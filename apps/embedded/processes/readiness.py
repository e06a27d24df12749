"""Readiness checks of children: cheap requests, sent many times a second during the start."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

ANSWER_SECONDS = 2.0

Ready = Callable[[], Awaitable[bool]]
"""Returns soon, and False instead of an error."""


def http_ready(host: str, port: int, path: str = "/health", *, below: int = 300) -> Ready:
    """Return a check that is True if a GET is answered with a status below `below`."""
    request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode()

    async def ready() -> bool:
        head = await _ask(lambda: asyncio.open_connection(host, port), request, lines=1)
        words = head.split(maxsplit=2)
        return len(words) > 1 and words[1].isdigit() and int(words[1]) < below

    return ready


def redis_ready(connect: "Connect", password: str) -> Ready:
    """Return a check that is True if PING is answered; a Redis that reads its file says LOADING."""
    request = f"AUTH {password}\r\nPING\r\n".encode()

    async def ready() -> bool:
        return (await _ask(connect, request, lines=2)) == b"+OK\r\n+PONG\r\n"

    return ready


Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


async def _ask(connect: Connect, request: bytes, *, lines: int) -> bytes:
    """Return the first lines of the answer, or b"" if there is none in time."""
    answer = b""
    with contextlib.suppress(OSError, TimeoutError, asyncio.LimitOverrunError, ValueError):
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await connect()
            try:
                writer.write(request)
                for _ in range(lines):
                    answer += await reader.readline()
            finally:
                writer.close()
    return answer
