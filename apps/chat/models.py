"""Conversations: a tree of messages, so that an edit or another answer never destroys one."""

from typing import Any, Self

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import models

from apps.core.models import Owned, OwnedQuerySet
from apps.llm.models import Server

TITLE_LENGTH = 80


class SystemPromptQuerySet(OwnedQuerySet["SystemPrompt"]):
    def latest_versions(self) -> Self:
        """The newest version of each name."""
        newer = models.Q(
            owner_id=models.OuterRef("owner_id"),
            name=models.OuterRef("name"),
            version__gt=models.OuterRef("version"),
        )
        return self.filter(~models.Exists(SystemPrompt.objects.filter(newer)))


class SystemPrompt(Owned):
    """One version of a named system prompt. A text never changes: a changed one is a new version.

    Conversations that share a version send the same bytes first, so the server can reuse what it
    has read already.
    """

    name = models.CharField(max_length=100)
    version = models.PositiveIntegerField(default=1)
    text = models.TextField()

    objects = SystemPromptQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "name", "version"], name="chat_system_prompt_version"
            )
        ]

    def __str__(self) -> str:
        return self.name if self.version == 1 else f"{self.name} (version {self.version})"


class Conversation(Owned):
    """Who talks to which model under which system prompt. `active_leaf` ends the branch shown."""

    title = models.CharField(max_length=TITLE_LENGTH, blank=True)
    server = models.ForeignKey(
        Server,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Empty: the default server for chat.",
    )
    model = models.CharField(max_length=300, blank=True, help_text="Empty: the server's default.")
    system_prompt = models.ForeignKey(
        SystemPrompt, on_delete=models.RESTRICT, null=True, blank=True, related_name="+"
    )
    params = models.JSONField(default=dict, blank=True)
    active_leaf = models.ForeignKey(
        "Message", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    updated = models.DateTimeField(auto_now=True)

    objects = OwnedQuerySet["Conversation"].as_manager()

    class Meta:
        ordering = ["-updated", "-pk"]
        indexes = [models.Index(fields=["owner", "-updated", "-id"], name="chat_conversation_list")]

    def __str__(self) -> str:
        return self.title or "New conversation"


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
        return self.filter(conversation__owner_id=user.pk)

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
    created = models.DateTimeField(auto_now_add=True)

    # Of answers only.
    request = models.JSONField(
        default=dict, blank=True, help_text="What it was asked with beside the conversation's own."
    )
    model = models.CharField(max_length=300, blank=True, default="")
    error_code = models.CharField(max_length=50, blank=True, default="")
    error_detail = models.TextField(blank=True, default="")
    finish_reason = models.CharField(max_length=20, blank=True, default="")
    prompt_tokens = models.PositiveIntegerField(null=True, blank=True)
    cached_tokens = models.PositiveIntegerField(null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(null=True, blank=True)
    ttft_ms = models.FloatField(
        null=True, blank=True, help_text="From sending to the first token that was not empty."
    )
    tokens_per_second = models.FloatField(null=True, blank=True)
    kept_from = models.BigIntegerField(
        null=True, blank=True, help_text="First message its prompt held, where the start was cut."
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
            )
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.pk}"

    @property
    def is_finished(self) -> bool:
        return self.status not in {Status.QUEUED, Status.STREAMING}

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
