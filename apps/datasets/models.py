"""Labelled texts and what became of them: rows, revisions, rejections, uploads, queues."""

import uuid
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Self

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.utils import timezone

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
        """Complete datasets only: one still coming in, or on its way out, is not there."""
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
        """Rows that the dataset itself marks as its test split."""
        return int(self.split_counts.get(Split.TEST, 0))

    @property
    def labels(self) -> list[str]:
        """All labels, the most frequent first."""
        return [
            label
            for label, _ in sorted(self.label_counts.items(), key=lambda item: (-item[1], item[0]))
        ]


class Example(models.Model):
    """A row as it is now. What it was before is in the changes of the revisions."""

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
        """Its beginning, for a list; without the blank lines some texts have around them."""
        text = self.text.strip()
        return text if len(text) <= PREVIEW_CHARACTERS else f"{text[: PREVIEW_CHARACTERS - 1]}…"

    @property
    def row(self) -> ExampleRow:
        return ExampleRow(self.text, self.label, self.split or None, self.origin, self.meta)


class Revision(models.Model):
    """One thing a person did to a dataset: what Undo takes back. Numbers have no gaps."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    what = models.CharField(max_length=300, help_text='A sentence: "Row 7: a became b."')
    created = models.DateTimeField(auto_now_add=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    rows = models.PositiveIntegerField(default=0, help_text="How many rows it changed.")
    undoes = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="+")
    undone = models.BooleanField(default=False)
    complete = models.BooleanField(
        default=True, help_text="Whether all its rows are changed: else it is no version yet."
    )

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["dataset", "number"], name="revision_number")
        ]

    def __str__(self) -> str:
        return f"{self.number}: {self.what}"


class Change(models.Model):
    """What a revision did to one row. Never altered: any version can be read again from these."""

    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="changes")
    index = models.PositiveIntegerField()
    before = models.JSONField(null=True, help_text="The fields that changed; null: no such row.")
    after = models.JSONField(null=True)

    class Meta:
        indexes = [models.Index(fields=["revision", "index"], name="change_row")]

    def __str__(self) -> str:
        return f"Row {self.index + 1}"


class BulkChange(models.Model):
    """A change of many rows that is being made, or that failed: `bulk` says how."""

    dataset = models.OneToOneField(Dataset, on_delete=models.CASCADE, related_name="bulk_change")
    kind = models.CharField(max_length=20)
    args = models.JSONField(default=dict)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)
    done = models.PositiveIntegerField(default=0, help_text="Rows.")
    total = models.PositiveIntegerField(default=0)
    lease = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    enqueued_at = models.DateTimeField(
        default=timezone.now, help_text="When a worker was last told."
    )
    attempts = models.PositiveSmallIntegerField(default=0)
    error = models.CharField(max_length=300, blank=True, default="")

    def __str__(self) -> str:
        return f"{self.kind} of {self.dataset}"


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


class UploadState(models.TextChoices):
    WAITING = "waiting", "waiting for column check"
    QUEUED = "queued"
    IMPORTING = "importing"
    DONE = "done"
    FAILED = "failed"


IN_PROGRESS = (UploadState.QUEUED, UploadState.IMPORTING)


class Upload(Owned):
    """Files that were sent, until they are a dataset. Their names on disk are made here."""

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
        """Where the first file is kept."""
        return self.path_of(0)

    def path_of(self, place: int) -> Path:
        return Path(settings.UPLOADS_DIR) / (f"{self.id}-{place}" if place else str(self.id))

    @property
    def files(self) -> list[dict[str, Any]]:
        """Each file's "name", "size" and "split" (empty: its column says, or nothing does)."""
        return self.parts or [{"name": self.file_name, "size": self.size, "split": ""}]

    @property
    def is_active(self) -> bool:
        return self.state in IN_PROGRESS

    def eta(self, now: datetime | None = None) -> float | None:
        """Seconds the import will still take at its rate so far."""
        if self.started is None or not self.done_share:
            return None
        spent = ((now or timezone.now()) - self.started).total_seconds()
        return spent / self.done_share * (1 - self.done_share)

    @property
    def eta_s(self) -> float | None:
        return self.eta()


class Queue(models.Model):
    """Rows somebody should look at, in an order somebody thought out. Never a test row."""

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
