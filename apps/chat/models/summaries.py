"""Summaries of what the context no longer holds."""

from datetime import timedelta

from django.db import models
from django.utils import timezone

from apps.chat.models.messages import Message

# A running summary that is older than this has lost its writer.
RUNNING_FOR = timedelta(minutes=6)
INTERRUPTED = "Workbench was stopped while generating it."


class SummaryState(models.TextChoices):
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"


class SummaryQuerySet(models.QuerySet["Summary"]):
    def live(self) -> "list[Summary]":
        """Fetch these summaries, with those whose writer has died marked as failed."""
        summaries = list(self)
        oldest = timezone.now() - RUNNING_FOR
        for summary in summaries:
            if summary.state == SummaryState.RUNNING and summary.created < oldest:
                summary.state, summary.text = SummaryState.FAILED, INTERRUPTED
                summary.save(update_fields=["state", "text"])
        return summaries


class Summary(models.Model):
    """A model's summary of the beginning of a branch, sent in its place once it is cut."""

    upto = models.OneToOneField(
        Message,
        on_delete=models.CASCADE,
        related_name="summary",
        help_text="The last message it covers.",
    )
    state = models.CharField(max_length=10, choices=SummaryState, default=SummaryState.RUNNING)
    text = models.TextField(
        blank=True, default="", help_text="The summary, or the error if it failed."
    )
    created = models.DateTimeField(default=timezone.now)

    objects = SummaryQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"Summary up to {self.upto_id}"
