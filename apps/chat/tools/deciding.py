"""What a person says about a call that waits for him, or that ended before it had a result."""

from asgiref.sync import async_to_sync
from django.db import transaction

from apps.chat.answering import runner
from apps.chat.conversations import branches
from apps.chat.conversations.errors import ChatError
from apps.chat.models import CallState, Conversation, Message, Status, ToolCall
from apps.chat.tools import settings
from apps.core import tools


class NotWaiting(ChatError):
    status = 409
    code = "not_waiting"

    def __init__(self) -> None:
        super().__init__("This call is no longer waiting for approval.")


class NotCutOff(ChatError):
    status = 409
    code = "not_cut_off"

    def __init__(self) -> None:
        super().__init__("This call cannot be run again. It is running or already has a result.")


def decide(call: ToolCall, *, run: bool, always: bool = False) -> ToolCall:
    """Lets a call run, or refuses it. The answer goes on from there.

    Returns:
        The call. Where the process that wrote the answer has died meanwhile, another answer goes
        on from it, and this is the call there.

    Args:
        always: the tool need not ask again in this conversation.

    Raises:
        NotWaiting: it was decided before, or its answer has ended.
    """
    runner.settle([call.answer])
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
            _allow(call)
        was_left = call.answer.status == Status.INTERRUPTED
        longer, taken = branches.continued(call.answer) if was_left else (None, {})
    if longer is not None:
        runner.begin(longer)
        return taken[call.pk]
    async_to_sync(runner.tell)(call.answer_id, call.pk)
    call.refresh_from_db()
    return call


def run_again(call: ToolCall) -> ToolCall:
    """Runs a call that ended with its answer, and has another answer go on from its result.

    What else was cut off in that round waits for a person: nothing is done twice unasked.

    Returns:
        The call in the other answer, as it begins.

    Raises:
        NotCutOff
    """
    runner.settle([call.answer])
    with transaction.atomic():
        call.refresh_from_db()
        answer = Message.objects.select_for_update().get(pk=call.answer_id)
        going_on = answer.conversation.messages.unfinished().filter(request__continues=answer.pk)
        if not call.can_run_again or going_on.exists():
            raise NotCutOff
        longer, taken = branches.continued(answer)
        again = taken[call.pk]
        unsettled = longer.tool_calls.filter(round=call.round, state=CallState.STOPPED)
        unsettled.update(state=CallState.WAITING, result="", finished=None)
        ToolCall.objects.filter(pk=again.pk).update(state=CallState.RUNNING)
        again.refresh_from_db()
    runner.begin(longer)
    return again


def _allow(call: ToolCall) -> None:
    conversation = Conversation.objects.get(messages=call.answer_id)
    known = tools.available(conversation.owner_id)
    if tool := next((tool for tool in known if tool.name == call.name), None):
        conversation.tools = settings.allowing(conversation.tools, tool)
        conversation.save(update_fields=["tools"])
