"""Uploaded files, until they are imported."""

import uuid
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from apps.core.models import Owned, OwnedQuerySet
from apps.datasets.models.datasets import Dataset


class UploadState(models.TextChoices):
    WAITING = "waiting", "waiting for column check"
    QUEUED = "queued"
    IMPORTING = "importing"
    DONE = "done"
    FAILED = "failed"


IN_PROGRESS = (UploadState.QUEUED, UploadState.IMPORTING)


class Upload(Owned):
    """Uploaded files until they are a dataset. Their names on disk are generated."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    file_name = models.CharField(max_length=200, help_text="What the sender called it; shown only.")
    size = models.PositiveBigIntegerField()
    parts = models.JSONField(
        default=list, help_text='Of several files: [{"name", "size", "split"}]. Empty: one file.'
    )
    state = models.CharField(max_length=10, choices=UploadState, default=UploadState.WAITING)
    import_options = models.JSONField(default=dict, help_text="As `ImportOptions` reads them.")
    dataset = models.ForeignKey(Dataset, null=True, on_delete=models.SET_NULL, related_name="+")
    error = models.TextField(blank=True)

    # How far the import is; a worker holds it by a lease, and every write carries the token.
    done_rows = models.PositiveIntegerField(default=0)
    done_share = models.FloatField(default=0, help_text="Of the bytes, 0 to 1.")
    started = models.DateTimeField(null=True)
    lease = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    enqueued_at = models.DateTimeField(
        default=timezone.now, help_text="When a worker was last told."
    )
    attempts = models.PositiveSmallIntegerField(default=0)
    cancelled = models.BooleanField(default=False)

    objects: ClassVar[OwnedQuerySet["Upload"]] = OwnedQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["-created"]

    def __str__(self) -> str:
        return self.file_name

    @property
    def path(self) -> Path:
        """Return the path of the first file."""
        return self.path_of(0)

    def path_of(self, place: int) -> Path:
        return Path(settings.UPLOADS_DIR) / (f"{self.id}-{place}" if place else str(self.id))

    @property
    def files(self) -> list[dict[str, Any]]:
        """List each file's "name", "size" and "split" (empty: a column holds it, or nothing)."""
        return self.parts or [{"name": self.file_name, "size": self.size, "split": ""}]

    @property
    def is_active(self) -> bool:
        return self.state in IN_PROGRESS

    def eta(self, now: datetime | None = None) -> float | None:
        """Estimate the seconds left at the rate so far; None before the first rows."""
        if self.started is None or not self.done_share:
            return None
        spent = ((now or timezone.now()) - self.started).total_seconds()
        return spent / self.done_share * (1 - self.done_share)

    @property
    def eta_s(self) -> float | None:
        return self.eta()
