"""Uploaded files, until they are imported."""

import uuid
from datetime import datetime
from pathlib import Path
from typing import ClassVar, TypedDict

from django.conf import settings
from django.db import models
from django.utils import timezone

from apps.core.models import Owned, OwnedQuerySet
from apps.core.schemas.json_types import JsonObject
from apps.datasets.models.datasets import Dataset
from apps.work import services as work
from apps.work.models import Task, TaskState


class UploadState(models.TextChoices):
    WAITING = "waiting", "waiting for column check"
    QUEUED = "queued"
    IMPORTING = "importing"
    DONE = "done"
    FAILED = "failed"


class UploadedPart(TypedDict):
    """One of the files, as `Upload.parts` holds it."""

    name: str
    size: int
    split: str
    """Empty: a column holds it, or nothing."""


_STATES = {
    TaskState.QUEUED: UploadState.QUEUED,
    TaskState.RUNNING: UploadState.IMPORTING,
    TaskState.DONE: UploadState.DONE,
    TaskState.FAILED: UploadState.FAILED,
}


class Upload(Owned):
    """Uploaded files until they are a dataset. Their names on disk are generated."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    file_name = models.CharField(max_length=200, help_text="What the sender called it; shown only.")
    size = models.PositiveBigIntegerField()
    parts = models.JSONField(
        default=list, help_text='Of several files: [{"name", "size", "split"}]. Empty: one file.'
    )
    dataset = models.ForeignKey(Dataset, null=True, on_delete=models.SET_NULL, related_name="+")
    task = models.OneToOneField(
        Task,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Its import, once started. Its options are as `ImportOptions` reads them.",
    )

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
    def files(self) -> list[UploadedPart]:
        return self.parts or [UploadedPart(name=self.file_name, size=self.size, split="")]

    @property
    def state(self) -> UploadState:
        found = _STATES.get(TaskState(self.task.state)) if self.task else None
        return found or UploadState.WAITING

    @property
    def import_options(self) -> JsonObject:
        """Return the options of its import; {} before one was started."""
        return self.task.options if self.task else {}

    @property
    def error(self) -> str:
        return self.task.error if self.task else ""

    @property
    def is_active(self) -> bool:
        return self.task is not None and self.task.is_active

    @property
    def wait_reason(self) -> str:
        """Say what a queued import waits for; "" if it does not wait."""
        return work.wait_reason(self.task) if self.task else ""

    @property
    def done_rows(self) -> int:
        return self.task.done if self.task else 0

    @property
    def done_share(self) -> float:
        """Return the share of the bytes that is read, 0 to 1."""
        return self.task.done / self.task.total if self.task and self.task.total else 0.0

    def eta(self, now: datetime | None = None) -> float | None:
        """Estimate the seconds left at the rate so far; None before the first rows."""
        share = self.done_share
        if self.task is None or self.task.started is None or not share:
            return None
        spent = ((now or timezone.now()) - self.task.started).total_seconds()
        return spent / share * (1 - share)

    @property
    def eta_s(self) -> float | None:
        return self.eta()
