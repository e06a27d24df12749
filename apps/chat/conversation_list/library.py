"""The list of conversations: tags, and deleting many with Undo."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from apps.chat.conversations import services
from apps.chat.errors import ChatError
from apps.chat.models import Conversation, ConversationQuerySet, Message, Tag
from apps.servers.services import drop_conversations

TAG_LENGTH = 40
MAX_TAGS = 20


class BadTags(ChatError):
    code = "bad_tags"


def list_conversations(
    owner: User, *, tag: int | None = None, archived: bool = False, project: int | None = None
) -> ConversationQuerySet:
    """Return the conversations of one list: pinned ones first, then the newest.

    Those of a project are in its own list, with those of a tag, and in the archive.
    """
    found = Conversation.objects.owned_by(owner).filter(archived=archived)
    if tag is not None:
        found = found.filter(tags=tag)
    elif project is not None or not archived:
        found = found.filter(project=project)
    return found.order_by("-pinned", "-updated", "-pk")


def parse_tags(text: str) -> list[str]:
    """Return the tags in a text that separates them by commas.

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
    """Set the tags of a conversation, and delete tags that are no longer used."""
    conversation.tags.set(_tags(conversation.owner_id, names))
    _delete_unused_tags(conversation.owner_id)


@transaction.atomic
def add_tags(conversations: Iterable[Conversation], names: list[str]) -> None:
    for conversation in conversations:
        conversation.tags.add(*_tags(conversation.owner_id, names))


def delete(conversations: ConversationQuerySet) -> int:
    """Delete conversations together, permanently a day later; return their number."""
    found = list(conversations.values_list("pk", flat=True))
    for unfinished in Message.objects.unfinished().filter(conversation__in=found):
        services.stop(unfinished)
    drop_conversations(found)
    return Conversation.objects.filter(pk__in=found).update(deleted_at=timezone.now())


def restore(conversation: Conversation) -> int:
    """Restore a conversation and those that were deleted with it; return their number."""
    return (
        Conversation.objects.deleted_by(conversation.owner)
        .filter(deleted_at=conversation.deleted_at)
        .update(deleted_at=None)
    )


def count_deleted_with(conversation: Conversation) -> int:
    """Return how many conversations were deleted together, this one included."""
    gone = Conversation.objects.deleted_by(conversation.owner)
    return gone.filter(deleted_at=conversation.deleted_at).count()


def _tags(owner_id: int, names: list[str]) -> list[Tag]:
    Tag.objects.bulk_create(
        [Tag(owner_id=owner_id, name=name) for name in names], ignore_conflicts=True
    )
    return list(Tag.objects.filter(owner_id=owner_id, name__in=names))


def _delete_unused_tags(owner_id: int) -> None:
    Tag.objects.filter(owner_id=owner_id, conversations=None).delete()
