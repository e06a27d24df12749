"""Files that people attach to messages."""

import uuid
from pathlib import Path

from django.conf import settings
from django.db import models

from apps.chat.models.messages import Message
from apps.core.models import Owned, OwnedQuerySet


class AttachmentKind(models.TextChoices):
    TEXT = "text"
    PDF = "pdf"
    IMAGE = "image"


class Attachment(Owned):
    """A file attached to a message, stored under a random name, never under its own."""

    message = models.ForeignKey(
        Message, on_delete=models.CASCADE, null=True, blank=True, related_name="attachments"
    )
    stored_as = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=255, help_text="As its owner calls it.")
    kind = models.CharField(max_length=10, choices=AttachmentKind)
    media_type = models.CharField(max_length=100)
    size = models.PositiveIntegerField(help_text="Bytes.")
    text = models.TextField(blank=True, default="", help_text="What the model reads of it.")
    tokens = models.PositiveIntegerField(null=True, blank=True)

    objects = OwnedQuerySet["Attachment"].as_manager()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> Path:
        return Path(settings.DATA_DIR) / "attachments" / str(self.stored_as)
