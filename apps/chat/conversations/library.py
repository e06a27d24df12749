"""Keeping conversations in order: pins, the archive, tags, deleting many with Undo."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from apps.chat.conversations import services
from apps.chat.models import Conversation, ConversationQuerySet, Message, Tag

TAG_LENGTH = 40
MAX_TAGS = 20


class BadTags(services.ChatError):
    code = "bad_tags"


def shelf(owner: User, *, tag: int | None = None, archived: bool = False) -> ConversationQuerySet:
    """The conversations of one view of the list: pinned ones first, then the newest."""
    found = Conversation.objects.owned_by(owner).filter(archived=archived)
    if tag is not None:
        found = found.filter(tags=tag)
    return found.order_by("-pinned", "-updated", "-pk")


def tag_names(text: str) -> list[str]:
    """The tags in what a person typed, with commas between them.

    Raises:
        BadTags: too many, or one is too long.
    """
    names = list(dict.fromkeys(" ".join(name.split()) for name in text.split(",")))
    names = [name for name in names if name]
    for name in names:
        if len(name) > TAG_LENGTH:
            raise BadTags(
                f"The tag “{name[:20]}…” is too long. The limit is {TAG_LENGTH} characters."
            )
    if len(names) > MAX_TAGS:
        raise BadTags(f"A chat can have up to {MAX_TAGS} tags. You entered {len(names)}.")
    return names


@transaction.atomic
def set_tags(conversation: Conversation, names: list[str]) -> None:
    """These and no others. Tags that nothing has any more are forgotten."""
    conversation.tags.set(_tags(conversation.owner_id, names))
    _forget_unused(conversation.owner_id)


@transaction.atomic
def add_tags(conversations: Iterable[Conversation], names: list[str]) -> None:
    for conversation in conversations:
        conversation.tags.add(*_tags(conversation.owner_id, names))


def remove(conversations: ConversationQuerySet) -> int:
    """Takes conversations away, all under one time, until Undo or for good a day later."""
    found = list(conversations.values_list("pk", flat=True))
    for unfinished in Message.objects.unfinished().filter(conversation__in=found):
        services.stop(unfinished)
    return Conversation.objects.filter(pk__in=found).update(deleted_at=timezone.now())


def restore(conversation: Conversation) -> int:
    """Brings back what went together with this one."""
    return (
        Conversation.objects.removed_by(conversation.owner)
        .filter(deleted_at=conversation.deleted_at)
        .update(deleted_at=None)
    )


def gone_with(conversation: Conversation) -> int:
    """How many went together with a deleted one, itself among them."""
    gone = Conversation.objects.removed_by(conversation.owner)
    return gone.filter(deleted_at=conversation.deleted_at).count()


def _tags(owner_id: int, names: list[str]) -> list[Tag]:
    Tag.objects.bulk_create(
        [Tag(owner_id=owner_id, name=name) for name in names], ignore_conflicts=True
    )
    return list(Tag.objects.filter(owner_id=owner_id, name__in=names))


def _forget_unused(owner_id: int) -> None:
    Tag.objects.filter(owner_id=owner_id, conversations=None).delete()
