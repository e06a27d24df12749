"""What was removed comes back for a day, and is gone after it."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from apps.chat.conversation_list import library
from apps.chat.conversations import branches
from apps.chat.models import Conversation, Message
from apps.chat.tasks import UNDO_FOR, purge
from tests.chat.conftest import told


def test_after_a_day(alice: User) -> None:
    kept, removed, old = (told(alice, "one", "two") for _ in range(3))
    last = kept.messages.last()
    assert last is not None
    branches.delete(last)
    library.delete(Conversation.objects.filter(pk__in=[removed.pk, old.pk]))
    long_ago = timezone.now() - UNDO_FOR - timedelta(minutes=1)
    Conversation.objects.filter(pk=old.pk).update(deleted_at=long_ago)
    purge()
    assert set(Conversation.objects.all()) == {kept, removed}
    assert Message.objects.filter(pk=last.pk).exists()
    Message.objects.filter(pk=last.pk).update(deleted_at=long_ago)
    purge()
    assert [message.content for message in kept.messages.all()] == ["one"]
