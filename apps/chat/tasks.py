"""Periodic tasks of the chat.

Not durable tasks: what a run leaves, the next one deletes. An answer lives in the web process that
streams it (`answering/runner.py`), and is marked as interrupted when that ends.
"""

from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from apps.chat.attachments import receive
from apps.chat.conversations import branches, services

UNDO_FOR = timedelta(days=1)


@shared_task(name="apps.chat.tasks.purge")
def purge() -> None:
    """Delete permanently what was deleted, or uploaded and never sent, more than a day ago."""
    before = timezone.now() - UNDO_FOR
    branches.purge(before)
    receive.delete_stale(before)


@shared_task(name="apps.chat.tasks.delete_temporary")
def delete_temporary() -> None:
    """Delete temporary conversations that were left, or are almost a day old."""
    services.delete_expired()
