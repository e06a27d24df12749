"""An answer's events on the wire: server-sent events."""

from collections.abc import AsyncIterator

from asgiref.sync import SyncToAsync
from django.db import connection
from django.http import StreamingHttpResponse

from apps.chat import generation
from apps.chat.models import Message
from apps.chat.stream import Entry

# How soon a browser comes back after a broken connection.
RETRY_MS = 1000
# An event without a position: what comes next cannot be asked for, so a snapshot will be sent.
NO_POSITION = "start"
PING = b": ping\n\n"


def position_of(text: str | None) -> int | None:
    """The position a client names in `Last-Event-ID` or `after`; None for anything but a number."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 16 else None


def response(answer: Message, after: int | None) -> StreamingHttpResponse:
    """Streams the events. Holds no database connection and no thread while it does."""
    streaming = StreamingHttpResponse(
        _body(answer, after),
        content_type="text/event-stream",
        headers={"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"},
    )
    connection.close_if_unusable_or_obsolete()
    return streaming


async def _body(answer: Message, after: int | None) -> AsyncIterator[bytes]:
    _give_back_thread()
    yield b"retry: %d\n\n" % RETRY_MS
    async for entry in generation.events(answer, after):
        yield PING if entry is None else as_bytes(entry)


def as_bytes(entry: Entry) -> bytes:
    return f"id: {entry.id or NO_POSITION}\nevent: {entry.event}\ndata: {entry.data}\n\n".encode()


def _give_back_thread() -> None:
    """Ends the thread that ran this request's synchronous part.

    Django keeps one for each request until it is over: an open stream would hold it for minutes.
    Should this request need one again, asgiref starts another.
    """
    request_context = SyncToAsync.thread_sensitive_context.get(None)
    if request_context is not None:
        executor = SyncToAsync.context_to_thread_executor.pop(request_context, None)
        if executor is not None:
            executor.shutdown(wait=False)
