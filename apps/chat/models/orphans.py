"""Answers whose runner has died: their text is saved from the stream, and they end."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.utils import timezone

from apps.chat.models.calls import CallState, ToolCall, stop_calls
from apps.chat.streaming.runner_registry import is_running
from apps.chat.streaming.stream import partial_snapshot
from apps.core.text.storable import to_storable

if TYPE_CHECKING:
    from apps.chat.models.messages import Message

INTERRUPTED = "interrupted"
INTERRUPTED_DETAIL = "Workbench was stopped while generating this answer. Retry."
APPROVAL_LOST_DETAIL = (
    "Workbench was stopped while a tool call was waiting for approval. "
    "Allow or deny it to continue."
)


def mark_orphans_interrupted(messages: "Iterable[Message]") -> None:
    """Mark unfinished answers whose runner has died as interrupted, and save their text."""
    for message in messages:
        if not message.is_finished and not is_running(message.pk, message.created):
            _mark_interrupted(message)


def _mark_interrupted(answer: "Message") -> None:
    snapshot = partial_snapshot(answer.pk)
    # People can still approve a call that waits: they did not stop the answer.
    waiting = answer.waits_for_approval
    stop_calls(ToolCall.objects.filter(answer=answer.pk, state=CallState.RUNNING))
    type(answer).objects.unfinished().filter(pk=answer.pk).update(
        status=INTERRUPTED,
        content=to_storable(snapshot.text),
        reasoning=to_storable(snapshot.reasoning),
        error_code=INTERRUPTED,
        error_detail=APPROVAL_LOST_DETAIL if waiting else INTERRUPTED_DETAIL,
        finished=timezone.now(),
    )
    answer.refresh_from_db()
