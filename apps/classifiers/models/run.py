"""One training of a classifier."""

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.classifiers import metric_text
from apps.classifiers.evaluation.statistics.calibration_error import merge_bins
from apps.classifiers.models.background_record import BackgroundRecord
from apps.classifiers.models.classifier import Classifier
from apps.classifiers.run_results import CurvePoint
from apps.llm.permits import describe_batch_wait


class Status(models.TextChoices):
    QUEUED = "queued"
    EMBEDDING = "embedding"
    FITTING = "fitting"
    EVALUATING = "evaluating"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE = (Status.QUEUED, Status.EMBEDDING, Status.FITTING, Status.EVALUATING)
STAGES = (Status.EMBEDDING, Status.FITTING, Status.EVALUATING)
# Of a run, what only its own pages show: reading it takes longer than all the rest.
LARGE_FIELDS = (
    *("per_class", "confusion", "confused_pairs", "reliability", "test_indices", "skipped_rows"),
    *("leaks", "learning_curve", "review_queue"),
)


class RunQuerySet(models.QuerySet["Run"]):
    def active(self) -> "RunQuerySet":
        return self.filter(status__in=ACTIVE)

    def for_lists(self) -> "RunQuerySet":
        """Without what only the page of one run shows."""
        return self.defer(*LARGE_FIELDS)


class Run(BackgroundRecord):
    """One training: its input, its progress and its results.

    `done` of `total` is the progress within the stage that `status` names.
    """

    ACTIVE = ACTIVE

    classifier = models.ForeignKey(Classifier, on_delete=models.CASCADE, related_name="runs")
    number = models.PositiveIntegerField(help_text="1, 2, ... within its classifier.")
    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    stage_started = models.DateTimeField(null=True)

    # What went in.
    seed = models.PositiveIntegerField(default=0)
    options = models.JSONField(default=dict)
    snapshots = models.JSONField(
        default=list, help_text="The versions of the datasets it saw: dataset, version, rows, hash."
    )
    data_hash = models.CharField(max_length=64, blank=True)
    train_rows = models.PositiveIntegerField(default=0)
    test_source = models.CharField(max_length=300, blank=True)
    test_indices = models.JSONField(default=list)
    embedding = models.JSONField(default=dict)
    versions = models.JSONField(default=dict)

    # What came out.
    metrics = models.JSONField(default=dict)
    per_class = models.JSONField(default=list)
    confusion = models.JSONField(default=list)
    confused_pairs = models.JSONField(default=list)
    reliability = models.JSONField(default=list)
    fit = models.JSONField(default=dict)
    leaks = models.JSONField(default=dict, help_text="See `leaks.find_leaks`.")
    learning_curve = models.JSONField(default=list, help_text="Accuracy by how many rows it had.")
    thresholds = models.JSONField(default=dict, help_text="See `thresholds.Thresholds`.")
    review_queue = models.JSONField(default=list, help_text="See `review_queue.Suggestion`.")
    notes = models.JSONField(default=list)
    skipped_rows = models.JSONField(default=list)
    seconds = models.JSONField(default=dict)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["classifier", "number"], name="run_number"),
            # What makes a second press of Train harmless.
            models.UniqueConstraint(
                fields=["classifier"],
                condition=Q(status__in=[status.value for status in ACTIVE]),
                name="one_active_run",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.classifier} v{self.number}"

    @property
    def is_ready(self) -> bool:
        return self.status == Status.READY

    @property
    def artefact(self) -> str:
        """The name of its files in CLASSIFIERS_DIR."""
        return f"run-{self.pk}"

    def eta(self, now: datetime | None = None) -> float | None:
        """Seconds this stage will take at its rate so far; None while that says little."""
        if not self.is_active or self.stage_started is None or self.done == 0:
            return None
        spent = ((now or timezone.now()) - self.stage_started).total_seconds()
        return spent / self.done * max(0, self.total - self.done)

    @property
    def eta_s(self) -> float | None:
        return self.eta()

    @property
    def reason(self) -> str:
        """The reason for waiting, as a sentence; empty if it does not wait."""
        server = self.classifier.server_id
        return describe_batch_wait(server) if self.status == Status.EMBEDDING and server else ""

    @property
    def rate(self) -> float | None:
        """Per second, in this stage."""
        if not self.is_active or self.stage_started is None or self.done == 0:
            return None
        return self.done / max(1e-3, (timezone.now() - self.stage_started).total_seconds())

    @property
    def stages(self) -> list[dict[str, Any]]:
        """Each stage with how far it is: for the page."""
        places = {status: place for place, status in enumerate((Status.QUEUED, *STAGES))}
        here = places.get(Status(self.status), len(places))
        return [
            {
                "name": stage.value,
                "state": "done" if place < here else "now" if place == here else "later",
                "seconds": self.seconds.get(stage.value),
            }
            for place, stage in enumerate(STAGES, start=1)
        ]

    @property
    def learning_curve_text(self) -> str:
        """A sentence on the last step of the learning curve."""
        return metric_text.describe_learning_curve(
            [CurvePoint.from_json(point) for point in self.learning_curve]
        )

    @property
    def calibration_text(self) -> str:
        """A sentence on the calibration error, if there are enough test rows."""
        return metric_text.describe_calibration(self.metrics)

    @property
    def calibration_summary(self) -> str:
        """The verdict on calibration, with the commonest confidence as an example."""
        return metric_text.summarise_calibration(self.metrics, merge_bins(self.reliability))

    @property
    def has_calibration(self) -> bool:
        return bool(self.metrics.get("rows", 0) >= metric_text.MIN_ROWS_FOR_CALIBRATION)

    @property
    def accuracy(self) -> float | None:
        value: float | None = self.metrics.get("accuracy")
        return value

    @property
    def macro_f1(self) -> float | None:
        value: float | None = self.metrics.get("macro_f1")
        return value

    @property
    def ece(self) -> float | None:
        """None where too few test rows tell, also in lists of runs."""
        value: float | None = self.metrics.get("ece") if self.has_calibration else None
        return value

    @property
    def newly_embedded(self) -> int | None:
        value: int | None = self.embedding.get("sent")
        return value


class ReviewReason(models.TextChoices):
    """Reasons to review a row."""

    LABEL_ERROR = "label_error", "Likely label error"
    UNCERTAIN = "uncertain", "Uncertain"
    UNLABELLED = "unlabelled", "Unlabelled and uncertain"
