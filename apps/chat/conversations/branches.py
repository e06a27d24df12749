"""The tree of a conversation: editing, continuing, deleting and restoring messages."""

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.chat.answering import runner
from apps.chat.attachments import receive
from apps.chat.conversations import services
from apps.chat.errors import NotAQuestion, NothingToContinue
from apps.chat.models import AnswerRequest, Conversation, Message, Role, ToolCall, stop_calls

COPIED_FIELDS = (
    *("round", "call_id", "name", "arguments", "text_to", "reasoning_to"),
    *("state", "result", "created", "finished"),
)


@dataclass(frozen=True)
class DeletedBranch:
    """A message that was deleted with all that followed it, for Undo."""

    root: Message
    messages: int


def edit(question: Message, content: str) -> tuple[Message, Message]:
    """Add an edited version of a question, a sibling, and start its answer; return both.

    Raises:
        NotAQuestion, EmptyMessage, MessageTooLong, MessageDeleted, LimitReached
    """
    if question.role != Role.USER:
        raise NotAQuestion
    content = services.clean_question(content)
    with transaction.atomic():
        edited = Message.objects.create(
            conversation_id=question.conversation_id,
            parent_id=question.parent_id,
            role=Role.USER,
            content=content,
        )
        receive.copy(question, edited)
        answer = services.create_answer(edited, _request_of_newest_answer(question))
    runner.start_answer(answer)
    return edited, answer


def answer(question: Message, request: AnswerRequest | None = None) -> Message:
    """Start an answer to a question whose answer was deleted.

    Raises:
        NotAQuestion, MessageDeleted, LimitReached
    """
    if question.role != Role.USER:
        raise NotAQuestion
    with transaction.atomic():
        opened = services.create_answer(question, request)
    runner.start_answer(opened)
    return opened


def continue_answer(answer: Message) -> Message:
    """Start a sibling that begins with this answer's text and continues it.

    The text is sent as the beginning of the answer, so all of it is in the prompt cache.

    Raises:
        StillAnswering, NothingToContinue, MessageDeleted, LimitReached
    """
    services.require_finished(answer)
    if not answer.can_continue:
        raise NothingToContinue
    with transaction.atomic():
        longer, _ = create_continuation(answer)
    runner.start_answer(longer)
    return longer


def create_continuation(answer: Message) -> tuple[Message, dict[int, ToolCall]]:
    """Create the answer that continues another, and copy its calls. The caller starts it.

    Returns:
        The new answer, and its calls by the ID of the call they were copied from. Calls that still
        waited for approval wait there.
    """
    assert answer.parent is not None
    request = replace(answer.answer_request, continues=answer.pk)
    longer = services.create_answer(answer.parent, request)
    calls = list(answer.tool_calls.all())
    copies = ToolCall.objects.bulk_create(
        ToolCall(**{field: getattr(call, field) for field in COPIED_FIELDS}, answer=longer)
        for call in calls
    )
    stop_calls(call for call in calls if call.is_open)
    return longer, {call.pk: new for call, new in zip(calls, copies, strict=True)}


def delete(message: Message) -> DeletedBranch:
    """Delete a message and all that follows it, permanently a day later."""
    _stop(_subtree(message.pk, _children(message.conversation_id)))
    with transaction.atomic():
        # A new question updates this row too, so it is seen here, or refused there.
        conversation = Conversation.objects.select_for_update().get(pk=message.conversation_id)
        children = _children(conversation.pk)
        gone = _subtree(message.pk, children)
        Message.objects.filter(pk__in=gone).update(deleted_at=timezone.now())
        if conversation.active_leaf_id in gone:
            siblings = [pk for pk in children[message.parent_id] if pk not in gone]
            leaf = _leaf_below(siblings[-1], children) if siblings else message.parent_id
            Conversation.objects.filter(pk=conversation.pk).update(active_leaf_id=leaf)
    _stop(gone)
    message.refresh_from_db()
    return DeletedBranch(message, len(gone))


def _stop(messages: set[int]) -> None:
    for unfinished in Message.objects.unfinished().filter(pk__in=messages):
        services.stop(unfinished)


def restore(root: Message) -> None:
    """Undo `delete`: restore and show everything that was deleted with this message.

    The messages before it are restored too if they were deleted later: no message is left without
    its parent.
    """
    if root.deleted_at is None:
        return
    with transaction.atomic():
        conversation = Conversation.objects.select_for_update().get(pk=root.conversation_id)
        Message.objects.filter(conversation=conversation, deleted_at=root.deleted_at).update(
            deleted_at=None
        )
        _restore_above(Message.objects.filter(conversation=conversation))
    services.show_branch(root)


def _restore_above(messages: QuerySet[Message]) -> None:
    """Restore the parents of those messages that exist."""
    there = messages.filter(deleted_at=None)
    while above := set(
        there.exclude(parent__deleted_at=None)
        .exclude(parent=None)
        .values_list("parent_id", flat=True)
    ):
        Message.objects.filter(pk__in=above).update(deleted_at=None)


def purge(before: datetime) -> int:
    """Delete permanently what was deleted before a time; return the number of rows.

    All messages below a message are deleted with it, so messages that still exist keep their
    parents.
    """
    _, conversations = Conversation.objects.filter(deleted_at__lt=before).delete()
    with transaction.atomic():
        _restore_above(Message.objects.filter(parent__deleted_at__lt=before))
        old = Message.objects.filter(deleted_at__lt=before)
        kept: set[int] = set()
        below = set(
            Message.objects.filter(deleted_at__gte=before).values_list("parent_id", flat=True)
        )
        while below := set(
            old.filter(pk__in=below).exclude(pk__in=kept).values_list("pk", flat=True)
        ):
            kept |= below
            below = set(old.filter(pk__in=below).values_list("parent_id", flat=True))
        _, messages = old.exclude(pk__in=kept).delete()
    return sum(conversations.values()) + sum(messages.values())


def _request_of_newest_answer(question: Message) -> AnswerRequest | None:
    newest = question.children.filter(role=Role.ASSISTANT, deleted_at=None).last()
    return newest.answer_request.without_other_answers() if newest else None


def _children(conversation_id: int) -> dict[int | None, list[int]]:
    children: dict[int | None, list[int]] = defaultdict(list)
    tree = Message.objects.filter(conversation_id=conversation_id, deleted_at=None).order_by("pk")
    for pk, parent in tree.values_list("pk", "parent_id"):
        children[parent].append(pk)
    return children


def _subtree(root: int, children: dict[int | None, list[int]]) -> set[int]:
    found, waiting = {root}, [root]
    while waiting:
        below = children[waiting.pop()]
        found.update(below)
        waiting.extend(below)
    return found


def _leaf_below(pk: int, children: dict[int | None, list[int]]) -> int:
    while children[pk]:
        pk = children[pk][-1]
    return pk
