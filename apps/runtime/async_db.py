"""The database in asynchronous code.

Buys: no connection is held while a stream or a pump waits, minutes for each answer.
"""

from collections.abc import AsyncIterator, Callable, Generator
from functools import wraps
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections

P = ParamSpec("P")
R = TypeVar("R")


async def in_db(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a function that uses the database in a thread, and release its connection afterwards."""

    @wraps(function)
    def run() -> R:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    return await sync_to_async(run, thread_sensitive=True)()


async def stream_from_thread(pieces: Generator[bytes]) -> AsyncIterator[bytes]:
    """Yield the pieces of a generator, each step in a thread: for a streamed response.

    Django would collect a plain generator, or a `FileResponse`, into a list before the first byte.
    """
    try:
        while (piece := await in_db(next, pieces, None)) is not None:
            yield piece
    finally:
        pieces.close()
