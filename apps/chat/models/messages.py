"""Questions and answers, the files of a question, and what was written about many of them."""

import uuid
from pathlib import Path
from typing import Any, Self

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.utils import timezone

from apps.chat.models.calls import CallState
from apps.chat.models.conversations import Conversation
from apps.chat.models.presets import SystemPrompt
from apps.core.models import Owned, OwnedQuerySet


class Role(models.TextChoices):
    USER = "user"
    ASSISTANT = "assistant"


class Status(models.TextChoices):
    QUEUED = "queued"
    """Not finished. In the database an answer stays so until its end: its events say more."""
    STREAMING = "streaming"
    COMPLETE = "complete"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    """The process that wrote it died, or was shut down."""
    FAILED = "failed"
    """The model server gave an error. What it had written before is kept."""


class MessageQuerySet(models.QuerySet["Message"]):
    def owned_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        return self.filter(
            conversation__owner_id=user.pk, conversation__deleted_at=None, deleted_at=None
        )

    def removed_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        return self.filter(conversation__owner_id=user.pk, conversation__deleted_at=None).exclude(
            deleted_at=None
        )

    def answers(self) -> Self:
        return self.filter(role=Role.ASSISTANT)

    def unfinished(self) -> Self:
        return self.filter(status=Status.QUEUED)


class Message(models.Model):
    """A question or an answer. Children of one parent are siblings: versions of the same turn."""

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="messages"
    )
    parent = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="children"
    )
    role = models.CharField(max_length=10, choices=Role)
    content = models.TextField(blank=True, default="")
    reasoning = models.TextField(blank=True, default="")
    status = models.CharField(max_length=12, choices=Status, default=Status.COMPLETE)
    created = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(
        null=True, blank=True, help_text="The same for all messages that went together."
    )

    pinned = models.BooleanField(
        default=False, help_text="Sent with its exchange also when the beginning is cut."
    )

    # Of answers only.
    request = models.JSONField(
        default=dict, blank=True, help_text="What it was asked with beside the conversation's own."
    )
    model = models.CharField(max_length=300, blank=True, default="")
    error_code = models.CharField(max_length=50, blank=True, default="")
    error_detail = models.TextField(blank=True, default="")
    finish_reason = models.CharField(max_length=20, blank=True, default="")
    max_tokens = models.PositiveIntegerField(
        null=True, blank=True, help_text="What its last request was limited to; empty: not sent."
    )
    prompt_tokens = models.PositiveIntegerField(null=True, blank=True)
    cached_tokens = models.PositiveIntegerField(null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(null=True, blank=True)
    ttft_ms = models.FloatField(
        null=True, blank=True, help_text="From sending to the first token that was not empty."
    )
    tokens_per_second = models.FloatField(null=True, blank=True)
    reasoning_ms = models.FloatField(
        null=True, blank=True, help_text="From the first thought to the first word of the answer."
    )
    cut_before_message = models.BigIntegerField(
        null=True, blank=True, help_text="First message its prompt held, where the start was cut."
    )
    system_prompt = models.ForeignKey(
        SystemPrompt, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    prompt_prefix = models.JSONField(
        default=dict, blank=True, help_text="What else its prompt began with: see `prompting.Head`."
    )
    reprocessed_tokens = models.PositiveIntegerField(
        default=0, help_text="Of its prompt, read again though the server had read them before."
    )
    reprocessed_reason = models.TextField(
        blank=True, default="", help_text="Why, as half a sentence."
    )
    finished = models.DateTimeField(null=True, blank=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(
                fields=["conversation"],
                condition=models.Q(status=Status.QUEUED),
                name="chat_message_unfinished",
            ),
            models.Index(
                fields=["deleted_at"],
                condition=models.Q(deleted_at__isnull=False),
                name="chat_message_deleted",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.pk}"

    @property
    def is_finished(self) -> bool:
        return self.status not in {Status.QUEUED, Status.STREAMING}

    @property
    def waits_for_person(self) -> bool:
        """Whether it called something that a person has yet to allow."""
        return any(call.state == CallState.WAITING for call in self.tool_calls.all())

    @property
    def can_go_on(self) -> bool:
        """Whether there is something that another answer could go on from."""
        return bool(self.content.strip()) or bool(self.tool_calls.all())

    @property
    def why_cut(self) -> str:
        """Which limit an answer ended at, as far as that is known; "" where it ended by itself."""
        if self.finish_reason != "length":
            return ""
        if self.completion_tokens is None or self.max_tokens is None:
            return "Cut at its length limit"
        if self.completion_tokens >= self.max_tokens:
            return f"Stopped at max tokens ({self.max_tokens:,})"
        total = (self.prompt_tokens or 0) + self.completion_tokens
        return f"Stopped: the context is full ({total:,} tokens)"

    @property
    def why_empty(self) -> str:
        """Why a finished answer has no text; "" where it has, or where its error says it."""
        told = self.content.strip() or self.error_code or self.tool_calls.all()
        if told or self.status != Status.COMPLETE:
            return ""
        if not self.reasoning.strip():
            return "The answer is empty: the model ended it at once."
        if self.finish_reason == "length":
            return "No answer: the model spent all its tokens on thinking."
        return "No answer: the model ended after its thinking."

    @property
    def cached_share(self) -> float | None:
        """Share of the prompt that the server had read already, 0 to 1."""
        if not self.prompt_tokens or self.cached_tokens is None:
            return None
        return self.cached_tokens / self.prompt_tokens

    @property
    def usage(self) -> dict[str, Any] | None:
        """What it cost, as the API shows it; None where nothing was measured."""
        if self.prompt_tokens is None:
            return None
        return {
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "completion_tokens": self.completion_tokens,
            "ttft_ms": self.ttft_ms,
            "tokens_per_second": self.tokens_per_second,
        }


class SummaryState(models.TextChoices):
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"


class Summary(models.Model):
    """What a model wrote about the beginning of a branch, sent in its place once it is cut."""

    upto = models.OneToOneField(
        Message,
        on_delete=models.CASCADE,
        related_name="summary",
        help_text="The last message it covers.",
    )
    state = models.CharField(max_length=10, choices=SummaryState, default=SummaryState.RUNNING)
    text = models.TextField(blank=True, default="", help_text="Where it failed, why.")
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"Summary up to {self.upto_id}"


class AttachmentKind(models.TextChoices):
    TEXT = "text"
    PDF = "pdf"
    IMAGE = "image"


class Attachment(Owned):
    """A file that goes with a question. Its bytes lie under a name of ours, never under its own."""

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
