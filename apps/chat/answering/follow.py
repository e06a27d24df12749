"""The events of an answer for a reader, whether it is being written or saved."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import asdict

from apps.chat.models import Message, mark_orphans_interrupted
from apps.chat.streaming import stream
from apps.chat.streaming.event_log import local_log
from apps.chat.streaming.events import Snapshot, StreamEvent, compact_json
from apps.runtime.async_db import in_db


async def events(answer: Message, after: int | None = None) -> AsyncIterator[StreamEvent | None]:
    """Yield an answer's events after a position, or from a snapshot on; None while it is quiet."""
    if answer.is_finished:
        is_streamed = after is not None and await stream.exists(answer.pk)
    else:
        is_here = local_log(answer.pk) is not None
        is_streamed = is_here or not await in_db(_has_ended, answer)
    if is_streamed:
        async with aclosing(stream.follow(answer.pk, after)) as entries:  # type: ignore[type-var]
            async for event in entries:
                if event is None and await in_db(_has_ended, answer):
                    break
                yield event
            else:
                return
    for event in await in_db(saved_events, answer):
        yield event


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
