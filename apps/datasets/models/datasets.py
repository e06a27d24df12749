"""Datasets, their rows, the rejected rows and pairs of near-duplicates."""

from typing import ClassVar, Self

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import models

from apps.core.models import Owned, OwnedQuerySet
from apps.files import ExampleRow

PREVIEW_CHARACTERS = 400


class Split(models.TextChoices):
    NONE = "", "not given"
    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


class DatasetState(models.TextChoices):
    IMPORTING = "importing"
    READY = "ready"
    DELETING = "deleting"


class DatasetQuerySet(OwnedQuerySet["Dataset"]):
    def owned_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        """Filter complete datasets: not those being imported or deleted."""
        return super().owned_by(user).filter(state=DatasetState.READY)


class Dataset(Owned):
    name = models.CharField(max_length=200)
    origin = models.CharField(
        max_length=300, help_text="Where it came from: a file name, a job, an example."
    )
    state = models.CharField(
        max_length=10, choices=DatasetState, default=DatasetState.READY, db_index=True
    )
    version = models.PositiveIntegerField(
        default=0, help_text="The number of its last revision; 0 as it came in."
    )
    next_index = models.PositiveIntegerField(
        default=0, help_text="The place of the next row that is added. Places are not used twice."
    )
    # Counted once at import and kept in step by the services: a page must not count a million rows.
    rows = models.PositiveIntegerField(default=0)
    unlabelled = models.PositiveIntegerField(default=0)
    label_counts = models.JSONField(default=dict)
    split_counts = models.JSONField(default=dict)
    rejected_count = models.PositiveIntegerField(default=0)
    duplicates = models.PositiveIntegerField(
        default=0, help_text="Rows with the text of an earlier row: see `similarity.text_key`."
    )
    extra_columns = models.JSONField(default=list, help_text="The names of what `meta` holds.")
    notes = models.JSONField(default=list, help_text="What was cleaned or found, in sentences.")
    report = models.JSONField(default=dict, help_text="What `reports` found, and at which version.")
    near = models.JSONField(
        default=dict,
        help_text="The last search for near-duplicates: state, model, version, found, threshold.",
    )

    objects: ClassVar[DatasetQuerySet] = DatasetQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def test_rows(self) -> int:
        """Count the rows of the test split."""
        return int(self.split_counts.get(Split.TEST, 0))

    @property
    def labels(self) -> list[str]:
        """List all labels, the most frequent first."""
        return [
            label
            for label, _ in sorted(self.label_counts.items(), key=lambda item: (-item[1], item[0]))
        ]


class Example(models.Model):
    """A row as it is now. Changes of revisions hold its earlier values."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="examples")
    index = models.PositiveIntegerField(help_text="Its place in the dataset, from 0.")
    text = models.TextField()
    label = models.CharField(max_length=200, blank=True, help_text="Empty while nobody gave one.")
    split = models.CharField(max_length=10, choices=Split, default=Split.NONE, blank=True)
    origin = models.CharField(max_length=60, blank=True, default="")
    meta = models.JSONField(default=dict, blank=True, help_text="The cells of extra columns.")
    text_key = models.BigIntegerField(
        default=0, help_text="64 bits of the normalised text: see `similarity.text_key`."
    )

    class Meta:
        ordering = ["index"]
        constraints = [models.UniqueConstraint(fields=["dataset", "index"], name="example_place")]
        indexes = [
            models.Index(fields=["dataset", "label", "index"], name="example_label"),
            models.Index(fields=["dataset", "split", "index"], name="example_split"),
            # Holds all that duplicates, conflicts and leaks are found by.
            models.Index(fields=["dataset", "text_key", "split", "label"], name="example_text"),
        ]

    def __str__(self) -> str:
        return f"{self.label}: {self.text[:60]}"

    @property
    def preview(self) -> str:
        """Return its beginning without surrounding white space, for a list."""
        text = self.text.strip()
        return text if len(text) <= PREVIEW_CHARACTERS else f"{text[: PREVIEW_CHARACTERS - 1]}…"

    @property
    def row(self) -> ExampleRow:
        return ExampleRow(self.text, self.label, self.split or None, self.origin, self.meta)


class Rejection(models.Model):
    """A row of the source that is not in the dataset."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="rejections")
    file = models.CharField(max_length=200, blank=True, default="", help_text="Of several files.")
    row = models.PositiveIntegerField(help_text="Its number in the source; the header is row 1.")
    column = models.CharField(max_length=200, blank=True)
    reason = models.CharField(max_length=300)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"Row {self.row}: {self.reason}"


class NearDuplicate(models.Model):
    """Two rows whose texts mean nearly the same, by their embeddings."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="near_duplicates")
    index = models.PositiveIntegerField(help_text="The test row, where one of the two is.")
    other_index = models.PositiveIntegerField()
    cosine = models.FloatField()

    class Meta:
        ordering = ["-cosine", "pk"]
        indexes = [models.Index(fields=["dataset", "index"], name="near_row")]

    def __str__(self) -> str:
        return f"{self.index} ~ {self.other_index} ({self.cosine:.3f})"
