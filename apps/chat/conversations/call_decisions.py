"""Decisions of people on tool calls: allow, deny, run again."""

from asgiref.sync import async_to_sync
from django.db import transaction

from apps.chat.answering import runner
from apps.chat.conversations import branches
from apps.chat.errors import CannotRunAgain, NotWaiting
from apps.chat.models import (
    CallState,
    Conversation,
    Message,
    Status,
    ToolCall,
    mark_orphans_interrupted,
)
from apps.chat.tools import settings
from apps.core import tools


def decide(call: ToolCall, *, run: bool, always: bool = False) -> ToolCall:
    """Allow a call to run, or deny it. The answer continues.

    Args:
        always: always allow the tool in this conversation.

    Returns:
        The call. If the process that wrote the answer has died, another answer continues it, and
        this is the copy of the call there.

    Raises:
        NotWaiting: it was decided before, or its answer has ended.
    """
    mark_orphans_interrupted([call.answer])
    decided = CallState.RUNNING if run else CallState.REFUSED
    with transaction.atomic():
        waiting = ToolCall.objects.filter(
            pk=call.pk,
            state=CallState.WAITING,
            answer__status__in=[Status.QUEUED, Status.INTERRUPTED],
        )
        if not waiting.update(state=decided):
            raise NotWaiting
        if run and always:
            _always_allow(call)
        is_orphan = call.answer.status == Status.INTERRUPTED
        longer, copies = branches.create_continuation(call.answer) if is_orphan else (None, {})
    if longer is not None:
        runner.start_answer(longer)
        return copies[call.pk]
    async_to_sync(runner.notify_runner)(call.answer_id, call.pk)
    call.refresh_from_db()
    return call


def run_again(call: ToolCall) -> ToolCall:
    """Run a call that ended with its answer, and let another answer continue with its result.

    Other calls of that round that were cut off wait for approval: nothing runs twice unasked.

    Returns:
        The copy of the call in the other answer.

    Raises:
        CannotRunAgain
    """
    mark_orphans_interrupted([call.answer])
    with transaction.atomic():
        call.refresh_from_db()
        answer = Message.objects.select_for_update().get(pk=call.answer_id)
        continuations = answer.conversation.messages.unfinished().filter(
            request__continues=answer.pk
        )
        if not call.can_run_again or continuations.exists():
            raise CannotRunAgain
        longer, copies = branches.create_continuation(answer)
        again = copies[call.pk]
        cut_off = longer.tool_calls.filter(round=call.round, state=CallState.STOPPED)
        cut_off.update(state=CallState.WAITING, result="", finished=None)
        ToolCall.objects.filter(pk=again.pk).update(state=CallState.RUNNING)
        again.refresh_from_db()
    runner.start_answer(longer)
    return again


def _always_allow(call: ToolCall) -> None:
    conversation = Conversation.objects.get(messages=call.answer_id)
    known = tools.available(conversation.owner_id)
    if tool := next((tool for tool in known if tool.name == call.name), None):
        allowed = settings.always_allow(conversation.tool_settings, tool)
        conversation.tools = allowed.to_json()
        conversation.save(update_fields=["tools"])
