"""What programs used, by day, key and model; their files, and the batches made of them."""

import uuid
from pathlib import Path
from typing import ClassVar

from django.conf import settings
from django.db import models

from apps.batch.models import Batch
from apps.core.models import ApiKey, Owned, OwnedQuerySet

FILE_PREFIX = "file-"
BATCH_PREFIX = "batch_"


class Usage(models.Model):
    """What the requests of one key to one model came to on one day. All numbers are sums."""

    day = models.DateField()
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key_id = models.PositiveBigIntegerField(help_text="Of a key that may be gone. 0: several.")
    key_name = models.CharField(max_length=100)
    model = models.CharField(max_length=300, blank=True, help_text="Empty: none was found.")

    requests = models.PositiveBigIntegerField(default=0)
    failed = models.PositiveBigIntegerField(default=0)
    cancelled = models.PositiveBigIntegerField(default=0)
    prompt = models.PositiveBigIntegerField(default=0)
    prompt_reports = models.PositiveBigIntegerField(default=0)
    cached = models.PositiveBigIntegerField(default=0)
    cached_reports = models.PositiveBigIntegerField(default=0)
    completion = models.PositiveBigIntegerField(default=0)
    completion_reports = models.PositiveBigIntegerField(default=0)
    waits = models.PositiveBigIntegerField(default=0)
    waited_ms = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["day", "user", "key_id", "model"], name="one_usage_per_day"
            )
        ]
        indexes = [models.Index(fields=["user", "day"], name="usage_user_day")]

    def __str__(self) -> str:
        return f"{self.key_name} {self.model} {self.day}"


COUNTERS = (
    *("requests", "failed", "cancelled", "prompt", "prompt_reports", "cached", "cached_reports"),
    *("completion", "completion_reports", "waits", "waited_ms"),
)


class StoredBatch(models.Model):
    """The name of the last batch of counts that was stored: none is stored twice."""

    name = models.CharField(max_length=32, blank=True)

    def __str__(self) -> str:
        return self.name


class ProgramFile(Owned):
    """A file of a program. On disk it has a name of our own."""

    class Purpose(models.TextChoices):
        BATCH = "batch"
        """Requests, one a line."""
        BATCH_OUTPUT = "batch_output"
        """Their results, one a line."""

    key = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=200, help_text="What the sender called it; shown only.")
    purpose = models.CharField(max_length=20, choices=Purpose, default=Purpose.BATCH)
    size = models.PositiveBigIntegerField(default=0, help_text="In bytes.")
    expires = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[OwnedQuerySet["ProgramFile"]] = OwnedQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def public_id(self) -> str:
        """The name that programs use."""
        return FILE_PREFIX + self.key.hex

    @property
    def path(self) -> Path:
        return Path(settings.PROGRAM_FILES_DIR) / self.key.hex


class FileBatch(Owned):
    """Requests of an uploaded file, run as rows of a job. Files of results come when it ends."""

    class Status(models.TextChoices):
        VALIDATING = "validating"
        FAILED = "failed"
        IN_PROGRESS = "in_progress"
        COMPLETED = "completed"
        EXPIRED = "expired"
        CANCELLED = "cancelled"

    key = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    api_key = models.ForeignKey(ApiKey, on_delete=models.SET_NULL, null=True, related_name="+")
    job = models.OneToOneField(Batch, on_delete=models.SET_NULL, null=True, related_name="+")
    status = models.CharField(max_length=12, choices=Status, default=Status.VALIDATING)
    endpoint = models.CharField(max_length=40)
    window = models.CharField(max_length=10, help_text="As it was asked for, “24h”.")
    expires = models.DateTimeField(help_text="Requests that are not done by then are not sent.")
    input_file = models.ForeignKey(
        ProgramFile, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    input_key = models.UUIDField(help_text="Of the input file, which may be gone.")
    output_file = models.ForeignKey(
        ProgramFile, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    error_file = models.ForeignKey(
        ProgramFile, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    metadata = models.JSONField(default=dict)
    requests = models.PositiveIntegerField(default=0)
    completed = models.PositiveIntegerField(default=0, help_text="Written when it has ended.")
    failed = models.PositiveIntegerField(default=0, help_text="Written when it has ended.")
    errors = models.JSONField(default=list, help_text="Of the input file, see `LineError`.")
    started = models.DateTimeField(null=True, help_text="When its file was valid.")
    cancelled = models.DateTimeField(null=True, help_text="When someone asked for that.")
    ended = models.DateTimeField(null=True)

    objects: ClassVar[OwnedQuerySet["FileBatch"]] = OwnedQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.public_id

    @property
    def public_id(self) -> str:
        """The name that programs use."""
        return BATCH_PREFIX + self.key.hex
