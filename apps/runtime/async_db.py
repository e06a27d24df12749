"""The database, as seen from asynchronous code."""

from collections.abc import AsyncIterator, Callable, Generator
from functools import wraps
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections

P = ParamSpec("P")
R = TypeVar("R")


async def in_db(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Runs a function that uses the database in a thread, and hands the connection back after it.

    A stream or a pump lives for minutes; the connection it used for a moment must not.
    """

    @wraps(function)
    def run() -> R:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    return await sync_to_async(run, thread_sensitive=True)()


async def in_pieces(pieces: Generator[bytes]) -> AsyncIterator[bytes]:
    """What a generator yields, each step in a thread: for a response that is sent as it comes.

    Django would collect a plain generator, or a `FileResponse`, into a list before it sends a byte.
    """
    try:
        while (piece := await in_db(next, pieces, None)) is not None:
            yield piece
    finally:
        pieces.close()
