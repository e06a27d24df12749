"""Labelled texts, the rows that could not be used, and files waiting to be imported."""

import uuid
from pathlib import Path
from typing import ClassVar

from django.conf import settings
from django.db import models

from apps.core.models import Owned, OwnedQuerySet
from apps.datasets.formats import ExampleRow


class Split(models.TextChoices):
    NONE = "", "not given"
    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


class Dataset(Owned):
    name = models.CharField(max_length=200)
    origin = models.CharField(
        max_length=300, help_text="Where it came from: a file name, a job, an example."
    )
    # Counted once at import and kept in step by the services: a page must not count a million rows.
    rows = models.PositiveIntegerField(default=0)
    label_counts = models.JSONField(default=dict)
    split_counts = models.JSONField(default=dict)
    rejected_count = models.PositiveIntegerField(default=0)
    duplicates = models.PositiveIntegerField(
        default=0, help_text="Rows whose text was there before, but for case and outer spaces."
    )
    notes = models.JSONField(default=list, help_text="What was cleaned or found, in sentences.")

    objects: ClassVar[OwnedQuerySet["Dataset"]] = OwnedQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def test_rows(self) -> int:
        """Rows that the dataset itself marks as its test split."""
        return int(self.split_counts.get(Split.TEST, 0))


class Example(models.Model):
    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="examples")
    index = models.PositiveIntegerField(help_text="Its place in the dataset, from 0.")
    text = models.TextField()
    label = models.CharField(max_length=200)
    split = models.CharField(max_length=10, choices=Split, default=Split.NONE, blank=True)
    origin = models.CharField(max_length=60, blank=True, default="")

    class Meta:
        ordering = ["index"]
        constraints = [models.UniqueConstraint(fields=["dataset", "index"], name="example_place")]
        indexes = [models.Index(fields=["dataset", "label", "index"], name="example_label")]

    def __str__(self) -> str:
        return f"{self.label}: {self.text[:60]}"

    @property
    def row(self) -> ExampleRow:
        return ExampleRow(self.text, self.label, self.split or None, self.origin)


class Rejection(models.Model):
    """A row of the source that is not in the dataset."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="rejections")
    row = models.PositiveIntegerField(help_text="Its number in the source; the header is row 1.")
    column = models.CharField(max_length=200, blank=True)
    reason = models.CharField(max_length=300)

    class Meta:
        ordering = ["row", "pk"]

    def __str__(self) -> str:
        return f"Row {self.row}: {self.reason}"


class Upload(Owned):
    """A file that was sent and not yet imported. Its name on disk is made here."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    file_name = models.CharField(max_length=200, help_text="What the sender called it; shown only.")
    size = models.PositiveBigIntegerField()

    objects: ClassVar[OwnedQuerySet["Upload"]] = OwnedQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["-created"]

    def __str__(self) -> str:
        return self.file_name

    @property
    def path(self) -> Path:
        return Path(settings.UPLOADS_DIR) / str(self.id)
