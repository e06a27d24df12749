"""The tree of a conversation: editing, going on, taking away and bringing back."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.chat.answering import runner
from apps.chat.conversations import services
from apps.chat.models import Conversation, Message, Role, ToolCall
from apps.chat.prompt import attachments
from apps.chat.tools import history


class NothingToGoOnFrom(services.ChatError):
    code = "nothing_to_continue"

    def __init__(self) -> None:
        super().__init__("There is no text to continue from. Regenerate the answer instead.")


class NotAnswerable(services.ChatError):
    code = "not_a_question"

    def __init__(self) -> None:
        super().__init__("Only your own messages can be edited.")


@dataclass(frozen=True)
class Removed:
    """What Undo needs to know."""

    root: Message
    messages: int


def edit(question: Message, content: str) -> tuple[Message, Message]:
    """The question in other words: a sibling, with an answer of its own. The old one stays.

    Raises:
        NotAQuestion, QuestionTooLong, NotAnswerable
    """
    if question.role != Role.USER:
        raise NotAnswerable
    content = services.asked(content)
    with transaction.atomic():
        edited = Message.objects.create(
            conversation_id=question.conversation_id,
            parent_id=question.parent_id,
            role=Role.USER,
            content=content,
        )
        attachments.copy(question, edited)
        answer = services.open_answer(edited, _request_of_an_answer(question))
    runner.begin(answer)
    return edited, answer


def answer(question: Message, request: dict[str, Any] | None = None) -> Message:
    """An answer to a question that has none, because it was taken away.

    Raises:
        NotAnswerable
    """
    if question.role != Role.USER:
        raise NotAnswerable
    with transaction.atomic():
        opened = services.open_answer(question, request)
    runner.begin(opened)
    return opened


def go_on(answer: Message) -> Message:
    """A sibling that begins with this answer's text and goes on from there.

    The text is sent as the beginning of the answer, so the server has read all of it already.

    Raises:
        StillAnswering, NothingToGoOnFrom
    """
    runner.settle([answer])
    if not answer.is_finished:
        raise services.StillAnswering
    if not answer.can_go_on:
        raise NothingToGoOnFrom
    with transaction.atomic():
        longer, _ = continued(answer)
    runner.begin(longer)
    return longer


def continued(answer: Message) -> tuple[Message, dict[int, ToolCall]]:
    """The answer that goes on from another, not begun yet; and its calls, by those it took over."""
    assert answer.parent is not None
    longer = services.open_answer(answer.parent, answer.request | {"continues": answer.pk})
    return longer, history.take_along(answer, longer)


def remove(message: Message) -> Removed:
    """Takes a message and all that follows it away, until Undo or for good a day later."""
    _stop(_subtree(message.pk, _children(message.conversation_id)))
    with transaction.atomic():
        # Whoever asks writes this row too: what was asked meanwhile is seen now, or not taken.
        conversation = Conversation.objects.select_for_update().get(pk=message.conversation_id)
        children = _children(conversation.pk)
        gone = _subtree(message.pk, children)
        Message.objects.filter(pk__in=gone).update(deleted_at=timezone.now())
        if conversation.active_leaf_id in gone:
            siblings = [pk for pk in children[message.parent_id] if pk not in gone]
            beside = _end(siblings[-1], children) if siblings else message.parent_id
            Conversation.objects.filter(pk=conversation.pk).update(active_leaf_id=beside)
    _stop(gone)
    message.refresh_from_db()
    return Removed(message, len(gone))


def _stop(messages: set[int]) -> None:
    for unfinished in Message.objects.unfinished().filter(pk__in=messages):
        services.stop(unfinished)


def restore(root: Message) -> None:
    """Undoes `remove`: everything that went with this message comes back and is shown.

    With it comes what it answers, where that was removed later: nothing hangs below what is gone.
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
    """Brings back what those of the messages answer that are there."""
    there = messages.filter(deleted_at=None)
    while above := set(
        there.exclude(parent__deleted_at=None)
        .exclude(parent=None)
        .values_list("parent_id", flat=True)
    ):
        Message.objects.filter(pk__in=above).update(deleted_at=None)


def purge(before: datetime) -> int:
    """Deletes for good what was removed before a time; how many conversations and messages.

    Whatever is below a message goes with it. So what is still there keeps what it answers.
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


def _request_of_an_answer(question: Message) -> dict[str, Any]:
    """What the newest answer to a question was asked with, less what belongs to its text."""
    newest = question.children.filter(role=Role.ASSISTANT, deleted_at=None).last()
    return services.anew(newest.request) if newest else {}


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


def _end(pk: int, children: dict[int | None, list[int]]) -> int:
    while children[pk]:
        pk = children[pk][-1]
    return pk
