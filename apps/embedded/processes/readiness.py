"""Does a child answer yet? One cheap question, asked many times a second while it starts."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

ANSWER_SECONDS = 2.0

Ready = Callable[[], Awaitable[bool]]
"""Answers at once, and False rather than an error."""


def http_ready(host: str, port: int, path: str = "/health", *, below: int = 300) -> Ready:
    """Ready when a GET is answered with a status below the given one."""
    request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode()

    async def ready() -> bool:
        head = await _ask(lambda: asyncio.open_connection(host, port), request, lines=1)
        words = head.split(maxsplit=2)
        return len(words) > 1 and words[1].isdigit() and int(words[1]) < below

    return ready


def redis_ready(connect: "Connect", password: str) -> Ready:
    """Ready when PING is answered: while the append-only file is read, Redis says LOADING."""
    request = f"AUTH {password}\r\nPING\r\n".encode()

    async def ready() -> bool:
        return (await _ask(connect, request, lines=2)) == b"+OK\r\n+PONG\r\n"

    return ready


Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


async def _ask(connect: Connect, request: bytes, *, lines: int) -> bytes:
    """The first lines of the answer, or nothing when there is none in time."""
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
