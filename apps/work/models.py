"""The durable task: one row says what to do, who does it and how far it is."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class TaskState(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE = (TaskState.QUEUED, TaskState.RUNNING)


class TaskQuerySet(models.QuerySet["Task"]):
    def active(self) -> "TaskQuerySet":
        return self.filter(state__in=ACTIVE)

    def idle(self) -> "TaskQuerySet":
        """Active tasks that no living worker holds, by the database's clock."""
        return self.active().filter(Q(lease_until=None) | Q(lease_until__lt=Now()))


class Task(models.Model):
    """Background work of one `kind` on one `subject`; at most one row for each pair.

    The row is the truth and a Celery message only wakes a worker. The worker holds the row by a
    lease. Every write carries the lease's token, so a worker that was thought dead and comes back
    changes nothing.
    """

    kind = models.CharField(max_length=60, help_text="A name passed to `services.register`.")
    subject = models.CharField(max_length=300, help_text="The key of the object worked on.")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+"
    )
    options = models.JSONField(default=dict, help_text="Read and written by the kind's own room.")
    state = models.CharField(max_length=10, choices=TaskState, default=TaskState.QUEUED)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0, help_text="Steps; 0 while unknown.")
    error = models.TextField(blank=True)
    cancel_requested = models.BooleanField(default=False)
    attempts = models.PositiveSmallIntegerField(default=0, help_text="Times it was claimed.")
    lease = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    enqueued_at = models.DateTimeField(db_default=Now(), help_text="Time of the last message.")
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)

    objects: ClassVar[TaskQuerySet] = TaskQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "subject"], name="one_task_per_subject")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE
