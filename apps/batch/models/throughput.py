"""The speed of a batch over time."""

from django.db import models

from apps.batch.models.batch import Batch


class ThroughputHistory(models.Model):
    """Speed of a job over time, apart from the batch: lists of jobs do not read it."""

    batch = models.OneToOneField(Batch, on_delete=models.CASCADE, related_name="throughput")
    points = models.JSONField(default=list, help_text="See `throughput.Point`.")
    probe = models.JSONField(
        null=True, blank=True, help_text="Tokens/s by rows in parallel, see `ProbeResult`."
    )
    probed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"Throughput of batch {self.batch_id}"
