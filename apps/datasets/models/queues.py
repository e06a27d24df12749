"""Queues of rows to review, each row with a reason and suggested labels."""

from django.db import models

from apps.datasets.models.datasets import Dataset


class Queue(models.Model):
    """Rows to review, in order. Never a test row."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="queues")
    name = models.CharField(max_length=200)
    created = models.DateTimeField(auto_now_add=True)
    left_out = models.PositiveIntegerField(
        default=0, help_text="Rows that were asked for and are test rows, or not there."
    )

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name


class QueueItem(models.Model):
    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="items")
    place = models.PositiveIntegerField()
    index = models.PositiveIntegerField(help_text="The row's place in the dataset.")
    reason = models.CharField(max_length=300, blank=True)
    suggested = models.JSONField(default=list, help_text="Labels, the likeliest first.")
    seen = models.BooleanField(default=False)
    turn = models.PositiveIntegerField(
        null=True, help_text="Its number among those looked at, in order: Undo goes back by it."
    )
    revision = models.PositiveIntegerField(
        null=True, help_text="The number of the revision that gave it a label; null: kept, skipped."
    )

    class Meta:
        ordering = ["place"]
        constraints = [models.UniqueConstraint(fields=["queue", "place"], name="queue_place")]

    def __str__(self) -> str:
        return f"{self.queue}: row {self.index + 1}"
