"""An answer's events on the wire: server-sent events."""

from collections.abc import AsyncIterator

from django.http import HttpRequest, StreamingHttpResponse

from apps.chat.answering import runner
from apps.chat.answering.events import Entry
from apps.chat.models import Message
from apps.core import quotas

MEDIA_TYPE = "text/event-stream"
# How soon a browser comes back after a broken connection.
RETRY_MS = 1000
# An event without a position: what comes next cannot be asked for, so a snapshot will be sent.
NO_POSITION = "start"
PING = b": ping\n\n"


def position_of(text: str | None) -> int | None:
    """The position a client names in `Last-Event-ID` or `after`; None for anything but a number."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 16 else None


def is_wanted(request: HttpRequest) -> bool:
    """Whether the client asks for events where it could have JSON."""
    return MEDIA_TYPE in request.headers.get("Accept", "")


def place(request: HttpRequest) -> quotas.hold:
    """One more stream for who asks.

    Raises:
        LimitReached: as many of them are open.
    """
    return quotas.hold_for(request, "streams")


def response(
    answer: Message, held: quotas.hold, after: int | None = None, *, turn: str | None = None
) -> StreamingHttpResponse:
    """Streams the events. Holds no database connection and no thread while it does.

    Args:
        held: the person's place, given back when the stream ends.
        turn: what a question was answered with, in JSON: a first event of that name.
    """
    return StreamingHttpResponse(
        _body(answer, after, turn, held),
        content_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"},
    )


async def _body(
    answer: Message, after: int | None, turn: str | None, held: quotas.hold
) -> AsyncIterator[bytes]:
    with held:
        head = b"retry: %d\n\n" % RETRY_MS
        yield head if turn is None else head + as_bytes(Entry(0, "turn", turn))
        async for entry in runner.events(answer, after):
            yield PING if entry is None else as_bytes(entry)


def as_bytes(entry: Entry) -> bytes:
    return f"id: {entry.id or NO_POSITION}\nevent: {entry.event}\ndata: {entry.data}\n\n".encode()
