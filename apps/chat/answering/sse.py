"""Server-sent events: the response that streams an answer, being written or saved."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import asdict

from django.http import HttpRequest, StreamingHttpResponse

from apps.chat.models import Message, mark_orphans_interrupted
from apps.chat.streaming import stream
from apps.chat.streaming.event_log import local_log
from apps.chat.streaming.events import Snapshot, StreamEvent, compact_json
from apps.core import quotas
from apps.runtime.async_db import in_db

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
    return response_of(_body(answer, after, turn, held))


def response_of(body: AsyncIterator[bytes]) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        body,
        content_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"},
    )


async def _body(
    answer: Message, after: int | None, turn: str | None, held: quotas.hold
) -> AsyncIterator[bytes]:
    with held:
        head = b"retry: %d\n\n" % RETRY_MS
        if turn is not None:
            head += encode(StreamEvent(0, "turn", turn))
        async for batch in events(answer, after):
            yield head + (b"".join(map(encode, batch)) or PING)
            head = b""


def encode(event: StreamEvent) -> bytes:
    return f"id: {event.id or NO_POSITION}\nevent: {event.event}\ndata: {event.data}\n\n".encode()


async def events(answer: Message, after: int | None = None) -> AsyncIterator[list[StreamEvent]]:
    """Yield an answer's events after a position, or from a snapshot on; [] while it is quiet."""
    if answer.is_finished:
        is_streamed = after is not None and await stream.exists(answer.pk)
    else:
        is_here = local_log(answer.pk) is not None
        is_streamed = is_here or not await in_db(_has_ended, answer)
    if is_streamed:
        async with aclosing(stream.follow_batches(answer.pk, after)) as batches:
            async for batch in batches:
                if not batch and await in_db(_has_ended, answer):
                    break
                yield batch
            else:
                return
    yield await in_db(saved_events, answer)


def saved_events(answer: Message) -> list[StreamEvent]:
    """Return the events of a finished answer from the database, without positions."""
    calls = tuple(call.as_event() for call in answer.tool_calls.all())
    snapshot = Snapshot(answer.status, answer.content, answer.reasoning, calls)
    found = [StreamEvent(0, "snapshot", snapshot.as_json())]
    if answer.usage is not None:
        found.append(StreamEvent(0, "usage", compact_json(asdict(answer.usage))))
    if answer.error_code:
        error = {"code": answer.error_code, "detail": answer.error_detail}
        found.append(StreamEvent(0, "error", compact_json(error)))
    else:
        done = {"finish_reason": answer.finish_reason}
        found.append(StreamEvent(0, "done", compact_json(done)))
    return found


def _has_ended(answer: Message) -> bool:
    """Return True if an answer is finished: saved by its runner, or orphaned."""
    answer.refresh_from_db()
    mark_orphans_interrupted([answer])
    return answer.is_finished
