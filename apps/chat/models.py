"""Conversations: a tree of messages, so that an edit or another answer never destroys one."""

import json
import uuid
from pathlib import Path
from typing import Any, Self

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.utils import timezone

from apps.core.models import Owned, OwnedQuerySet
from apps.core.tools import title_of
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


class Preset(Owned):
    """A model, a system prompt and sampling parameters under one name.

    Choosing it copies them: a conversation does not change when its preset does.
    """

    name = models.CharField(max_length=100)
    server = models.ForeignKey(
        Server, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    model = models.CharField(max_length=300, blank=True)
    system_prompt = models.ForeignKey(
        SystemPrompt, on_delete=models.RESTRICT, null=True, blank=True, related_name="+"
    )
    params = models.JSONField(default=dict, blank=True)

    objects = OwnedQuerySet["Preset"].as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="chat_preset_name")]

    def __str__(self) -> str:
        return self.name


class Tag(Owned):
    """A word that conversations are kept under."""

    name = models.CharField(max_length=40)

    objects = OwnedQuerySet["Tag"].as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="chat_tag_name")]

    def __str__(self) -> str:
        return self.name


class ConversationQuerySet(OwnedQuerySet["Conversation"]):
    def owned_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        """Without those that were removed, which only Undo brings back."""
        return super().owned_by(user).filter(removed=None)

    def removed_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        return super().owned_by(user).exclude(removed=None)


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
    tools = models.JSONField(
        default=dict, blank=True, help_text="What its model may call: see `tools.settings`."
    )
    active_leaf = models.ForeignKey(
        "Message", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    updated = models.DateTimeField(auto_now=True)
    pinned = models.BooleanField(default=False)
    archived = models.BooleanField(default=False)
    tags = models.ManyToManyField(Tag, blank=True, related_name="conversations")
    source = models.CharField(
        max_length=200, blank=True, default="", help_text="What it was imported from."
    )
    removed = models.DateTimeField(null=True, blank=True)

    objects = ConversationQuerySet.as_manager()

    class Meta:
        ordering = ["-updated", "-pk"]
        indexes = [
            models.Index(fields=["owner", "-updated", "-id"], name="chat_conversation_list"),
            models.Index(
                fields=["removed"],
                condition=models.Q(removed__isnull=False),
                name="chat_conversation_removed",
            ),
        ]

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
        return self.filter(conversation__owner_id=user.pk, conversation__removed=None, removed=None)

    def removed_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        return self.filter(conversation__owner_id=user.pk, conversation__removed=None).exclude(
            removed=None
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
    removed = models.DateTimeField(
        null=True, blank=True, help_text="The same for all messages that went together."
    )

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
    reasoning_ms = models.FloatField(
        null=True, blank=True, help_text="From the first thought to the first word of the answer."
    )
    kept_from = models.BigIntegerField(
        null=True, blank=True, help_text="First message its prompt held, where the start was cut."
    )
    system_prompt = models.ForeignKey(
        SystemPrompt, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    lost_tokens = models.PositiveIntegerField(
        default=0, help_text="Of its prompt, read again though the server had read them before."
    )
    lost_reason = models.TextField(blank=True, default="", help_text="Why, as half a sentence.")
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
                fields=["removed"],
                condition=models.Q(removed__isnull=False),
                name="chat_message_removed",
            ),
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


class CallState(models.TextChoices):
    WAITING = "waiting", "Waiting for you"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    """Unknown, wrong arguments, an error, or too slow: the result says what."""
    REFUSED = "refused", "Refused"
    EXPIRED = "expired", "Nobody answered"
    STOPPED = "stopped", "Stopped"


OPEN_CALLS = (CallState.WAITING, CallState.RUNNING)


class ToolCallQuerySet(models.QuerySet["ToolCall"]):
    def owned_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        return self.filter(
            answer__conversation__owner_id=user.pk,
            answer__conversation__removed=None,
            answer__removed=None,
        )

    def unfinished(self) -> Self:
        return self.filter(state__in=OPEN_CALLS)


class ToolCall(models.Model):
    """What a model called while it answered, and what it was told.

    The calls of a round were written together. What the answer said before them ends at `text_to`
    and `reasoning_to`, in characters; a blank line, which the model did not write, follows there.
    """

    answer = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="tool_calls")
    round = models.PositiveSmallIntegerField(help_text="1, 2, ... within its answer.")
    call_id = models.CharField(max_length=200, help_text="As the model server named it.")
    name = models.CharField(max_length=200)
    arguments = models.TextField(help_text="As the model wrote them: JSON, if it was right.")
    text_to = models.PositiveIntegerField(default=0)
    reasoning_to = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=10, choices=CallState, default=CallState.RUNNING)
    result = models.TextField(blank=True, default="", help_text="What the model reads.")
    created = models.DateTimeField(default=timezone.now)
    finished = models.DateTimeField(null=True, blank=True)

    objects = ToolCallQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.name}({self.arguments})"

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_CALLS

    @property
    def title(self) -> str:
        return title_of(self.name)

    @property
    def shown_arguments(self) -> str:
        """For reading: JSON over several lines, anything else as it is."""
        try:
            return json.dumps(json.loads(self.arguments), indent=2, ensure_ascii=False)
        except (ValueError, RecursionError):
            return self.arguments


class Share(Owned):
    """A conversation as it was when it was shared, for everybody who has a login and the link."""

    token = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="shares")
    title = models.CharField(max_length=TITLE_LENGTH)
    messages = models.JSONField(help_text="role, content, reasoning and model of each, in order.")

    objects = OwnedQuerySet["Share"].as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.title


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
