"""Temporary chats: in no list, search or export, and deleted permanently after their time.

One is stored while it is open, so that its answers survive a reload and a restart like all others.
"""

from datetime import datetime, timedelta

from django.utils import timezone

from apps.chat.answering import titles
from apps.chat.models import Conversation, ConversationQuerySet, Role

TITLE = "Temporary chat"
# 24 hours are promised. What deletes runs every five minutes, and later on a busy machine.
LIFETIME = timedelta(hours=23)
# A page that is loaded anew, or opened again with Back, has been left before.
AFTER_LEAVING = timedelta(minutes=10)


def end_of(created: datetime) -> datetime:
    """Return until when a temporary chat is there while its page is open."""
    return created + LIFETIME


def leave(conversation: Conversation) -> None:
    """Have a temporary chat deleted soon: its page was closed."""
    soon = timezone.now() + AFTER_LEAVING
    _temporary(conversation).filter(temporary_until__gt=soon).update(temporary_until=soon)


def stay(conversation: Conversation) -> None:
    """Give a temporary chat its whole time back: a page of it is open."""
    _temporary(conversation).update(temporary_until=end_of(conversation.created))


def keep(conversation: Conversation) -> None:
    """Make a temporary chat an ordinary one, with its first message as its title."""
    if conversation.temporary_until is None:
        return
    title = conversation.title
    if title == TITLE:
        first = conversation.messages.filter(parent=None, role=Role.USER, deleted_at=None).first()
        title = titles.first_line(first.content) if first is not None else ""
    _temporary(conversation).update(temporary_until=None, title=title, updated=timezone.now())
    conversation.temporary_until, conversation.title = None, title


def _temporary(conversation: Conversation) -> ConversationQuerySet:
    return Conversation.objects.get_queryset().filter(
        pk=conversation.pk, temporary_until__isnull=False
    )
