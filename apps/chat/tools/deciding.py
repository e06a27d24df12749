"""What a person says about a call that waits for him."""

from asgiref.sync import async_to_sync

from apps.chat import generation
from apps.chat.errors import ChatError
from apps.chat.models import CallState, Conversation, Status, ToolCall
from apps.core.tools import Approval


class NotWaiting(ChatError):
    code = "not_waiting"

    def __init__(self) -> None:
        super().__init__("This call does not wait for anybody any more.")


def decide(call: ToolCall, *, run: bool, always: bool = False) -> ToolCall:
    """Lets a call run, or refuses it. The answer goes on from there.

    Args:
        always: the tool need not ask again in this conversation.

    Raises:
        NotWaiting: it was decided before, or its answer has ended.
    """
    generation.settle([call.answer])
    waiting = ToolCall.objects.filter(
        pk=call.pk, state=CallState.WAITING, answer__status=Status.QUEUED
    )
    if not waiting.update(state=CallState.RUNNING if run else CallState.REFUSED):
        raise NotWaiting
    if run and always:
        _allow(call)
    async_to_sync(generation.tell)(call.answer_id, call.pk)
    call.refresh_from_db()
    return call


def _allow(call: ToolCall) -> None:
    conversation = Conversation.objects.get(messages=call.answer_id)
    use = conversation.tools.get("use") or {}
    conversation.tools = conversation.tools | {"use": use | {call.name: str(Approval.ALWAYS)}}
    conversation.save(update_fields=["tools"])
