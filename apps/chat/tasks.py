"""What is done for the chat now and then."""

from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from apps.chat.conversations import branches
from apps.chat.prompt import attachments

UNDO_FOR = timedelta(days=1)


@shared_task(name="apps.chat.tasks.purge")
def purge() -> None:
    """Deletes for good what was removed, or taken in and never sent, more than a day ago."""
    before = timezone.now() - UNDO_FOR
    branches.purge(before)
    attachments.sweep(before)
