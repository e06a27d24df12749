"""The outcome of a durable task, as runs and file predictions store it."""

from enum import StrEnum
from typing import ClassVar

from django.db import models

from apps.work.models import Task


class TaskKind(StrEnum):
    TRAINING = "classifiers.training"
    FILE_PREDICTION = "classifiers.file_prediction"
    CONVERSION = "classifiers.conversion"


class BackgroundRecord(models.Model):
    """The outcome of a durable task. The task holds the lease, the progress and the cancelling."""

    ACTIVE: ClassVar[tuple[str, ...]]

    task = models.OneToOneField(Task, null=True, on_delete=models.SET_NULL, related_name="+")
    status = models.CharField(max_length=10)
    error = models.TextField(blank=True)
    created = models.DateTimeField(auto_now_add=True)
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    @property
    def is_active(self) -> bool:
        return self.status in self.ACTIVE

    @property
    def done(self) -> int:
        return self.task.done if self.task else 0

    @property
    def total(self) -> int:
        return self.task.total if self.task else 0

    @property
    def cancel_requested(self) -> bool:
        return bool(self.task and self.task.cancel_requested)

    @property
    def duration(self) -> float | None:
        if self.started is None or self.finished is None:
            return None
        return (self.finished - self.started).total_seconds()
