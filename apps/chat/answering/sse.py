"""Server-sent events: the response that streams an answer."""

from collections.abc import AsyncIterator

from django.http import HttpRequest, StreamingHttpResponse

from apps.chat.answering.follow import events
from apps.chat.models import Message
from apps.chat.streaming.events import StreamEvent
from apps.core import quotas

MEDIA_TYPE = "text/event-stream"
# Delay before a browser reconnects.
RETRY_MS = 1000
# The ID of an event without a position: after it, a reconnecting client gets a snapshot.
NO_POSITION = "start"
PING = b": ping\n\n"


def parse_position(text: str | None) -> int | None:
    """Return the position in `Last-Event-ID` or `after`; None for anything but a number."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 16 else None


def accepts_events(request: HttpRequest) -> bool:
    """Return True if the client prefers events to JSON."""
    return MEDIA_TYPE in request.headers.get("Accept", "")


def reserve_stream(request: HttpRequest) -> quotas.hold:
    """Count one more open stream of the user.

    Raises:
        LimitReached: they have too many.
    """
    return quotas.hold_for(request, "streams")


def response(
    answer: Message, held: quotas.hold, after: int | None = None, *, turn: str | None = None
) -> StreamingHttpResponse:
    """Stream the events, without holding a database connection or a thread.

    Args:
        held: the reserved stream, released when it ends.
        turn: JSON of a new turn, sent as the first event.
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
        yield head if turn is None else head + encode(StreamEvent(0, "turn", turn))
        async for event in events(answer, after):
            yield PING if event is None else encode(event)


def encode(event: StreamEvent) -> bytes:
    return f"id: {event.id or NO_POSITION}\nevent: {event.event}\ndata: {event.data}\n\n".encode()
