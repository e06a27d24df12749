"""A file of texts that is classified in the background."""

from django.db import models

from apps.classifiers.models.background_record import BackgroundRecord
from apps.classifiers.models.classifier import Classifier
from apps.classifiers.models.run import Run


class FileStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"


class FilePrediction(BackgroundRecord):
    """A file of texts to be classified in the background, and its download afterwards."""

    ACTIVE = (FileStatus.QUEUED.value, FileStatus.RUNNING.value)

    classifier = models.ForeignKey(Classifier, on_delete=models.CASCADE, related_name="files")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    status = models.CharField(max_length=10, choices=FileStatus, default=FileStatus.QUEUED)
    file_name = models.CharField(max_length=200, help_text="What the sender called it; shown only.")
    column = models.CharField(max_length=200, blank=True)
    file_format = models.CharField(max_length=5, default="csv")
    counts = models.JSONField(default=dict, help_text="Rows by label, gate or reason.")

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.file_name

    @property
    def is_ready(self) -> bool:
        return self.status == FileStatus.READY

    @property
    def artefact(self) -> str:
        return f"file-{self.pk}"
