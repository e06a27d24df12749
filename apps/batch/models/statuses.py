"""The states of batches and of their rows."""

from django.db import models


class BatchStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


class ItemStatus(models.TextChoices):
    PENDING = "pending"
    RUNNING = "running"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    FAILED = "failed"


ACTIVE = (BatchStatus.QUEUED, BatchStatus.RUNNING)
"""States in which a pump works on a batch."""
OPEN = (ItemStatus.PENDING, ItemStatus.RUNNING)
FINISHED = (ItemStatus.ACCEPTED, ItemStatus.REJECTED, ItemStatus.FAILED)
