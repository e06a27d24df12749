"""Documents of projects, and their passages."""

import uuid
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import models, transaction
from django.db.models.signals import post_delete
from django.dispatch import receiver

from apps.chat.models.projects import Project
from apps.core.models import Owned, OwnedQuerySet


class DocumentState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    READING = "reading", "Reading"
    EMBEDDING = "embedding", "Embedding"
    READY = "ready", "Ready"
    FAILED = "failed", "Failed"


class Document(Owned):
    """A file of a project. Its passages are searched for each new message of the project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="documents")
    stored_as = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=255, help_text="As its owner calls it.")
    size = models.PositiveIntegerField(help_text="Bytes.")
    state = models.CharField(max_length=10, choices=DocumentState, default=DocumentState.WAITING)
    done = models.PositiveIntegerField(default=0, help_text="Pages or passages, of `total`.")
    total = models.PositiveIntegerField(default=0, help_text="0 while unknown.")
    error = models.TextField(blank=True, default="")
    tokens = models.PositiveIntegerField(
        null=True, blank=True, help_text="An estimate. Empty: it was not read."
    )
    passage_count = models.PositiveIntegerField(default=0)
    fingerprint = models.CharField(
        max_length=64, blank=True, default="", help_text="Of the model that embedded it."
    )
    whole = models.BooleanField(default=False, help_text="Stands whole in every new chat's prompt.")

    objects = OwnedQuerySet["Document"].as_manager()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> Path:
        """The file of the document, deleted once it was read."""
        return Path(settings.DATA_DIR) / "documents" / str(self.stored_as)

    @property
    def is_active(self) -> bool:
        return self.state in {DocumentState.WAITING, DocumentState.READING, DocumentState.EMBEDDING}

    @property
    def is_read(self) -> bool:
        return self.tokens is not None


@receiver(post_delete, sender=Document)
def _delete_file(instance: Document, **kwargs: Any) -> None:
    transaction.on_commit(lambda: instance.path.unlink(missing_ok=True))


class Passage(models.Model):
    """A stretch of a document. All of them, in order, are its text."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="passages")
    position = models.PositiveIntegerField()
    page = models.PositiveIntegerField(null=True, blank=True, help_text="Empty: it has no pages.")
    heading = models.CharField(max_length=200, blank=True, default="")
    text = models.TextField()
    vector = models.BinaryField(
        null=True, help_text="Unit vector, float32 little-endian. Empty: it was not embedded."
    )

    class Meta:
        ordering = ["document", "position"]
        constraints = [
            models.UniqueConstraint(fields=["document", "position"], name="chat_passage_position")
        ]

    def __str__(self) -> str:
        return f"{self.document_id}, {self.position}"


class DocumentPrefix(Owned):
    """Whole documents as they stand in the prompts of some conversations. Never changed."""

    digest = models.CharField(max_length=64)
    text = models.TextField()
    document_ids = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "digest"], name="chat_document_prefix")
        ]

    def __str__(self) -> str:
        return self.digest
