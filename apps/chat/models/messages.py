"""Messages: questions and answers."""

from dataclasses import dataclass
from typing import Literal, Self

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.utils import timezone

from apps.chat.models.calls import CallState
from apps.chat.models.conversations import Conversation
from apps.chat.models.orphans import mark_orphans_interrupted
from apps.chat.models.presets import SystemPrompt
from apps.chat.models.stored_json import AnswerRequest, PromptPrefix


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


RatingWord = Literal["up", "down"]


class Rating(models.IntegerChoices):
    UP = 1
    DOWN = -1


@dataclass(frozen=True)
class Usage:
    """Cost of an answer, as events and the API show it. Its field names are the JSON keys."""

    prompt_tokens: int
    cached_tokens: int | None
    completion_tokens: int | None
    ttft_ms: float | None
    tokens_per_second: float | None


THOUGHT_TOO_LONG = "thinking"
"""The finish_reason of an answer whose thought used up all of its tokens."""


class MessageQuerySet(models.QuerySet["Message"]):
    def owned_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        return self.filter(
            conversation__owner_id=user.pk, conversation__deleted_at=None, deleted_at=None
        )

    def deleted_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        return self.filter(conversation__owner_id=user.pk, conversation__deleted_at=None).exclude(
            deleted_at=None
        )

    def live(self) -> "list[Message]":
        """Fetch these messages, with orphans (answers whose runner has died) marked.

        Every page and API call that shows the status of an answer starts here.
        """
        messages = list(self)
        mark_orphans_interrupted(messages)
        return messages

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
        null=True, blank=True, help_text="The same for all messages that were deleted together."
    )

    passages = models.JSONField(
        default=dict,
        blank=True,
        help_text="JSON of Findings: what of the project's documents was sent with it.",
    )
    pinned = models.BooleanField(
        default=False,
        help_text="Kept in the prompt, with its question or answer, when the beginning is cut.",
    )

    # Of answers only.
    request = models.JSONField(
        default=dict, blank=True, help_text="JSON of AnswerRequest: options of this answer alone."
    )
    model = models.CharField(max_length=300, blank=True, default="")
    server_name = models.CharField(
        max_length=200, blank=True, default="", help_text="Of the server that answered."
    )
    error_code = models.CharField(max_length=50, blank=True, default="")
    error_detail = models.TextField(blank=True, default="")
    finish_reason = models.CharField(max_length=20, blank=True, default="")
    fallback_note = models.CharField(
        max_length=300,
        blank=True,
        default="",
        help_text="Which server answered in place of the conversation's, as a sentence.",
    )
    max_tokens = models.PositiveIntegerField(
        null=True, blank=True, help_text="Limit of its last request. Empty: none was sent."
    )
    prompt_tokens = models.PositiveIntegerField(null=True, blank=True)
    cached_tokens = models.PositiveIntegerField(null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(null=True, blank=True)
    ttft_ms = models.FloatField(
        null=True,
        blank=True,
        help_text="Milliseconds from the request to the first token that was not empty.",
    )
    tokens_per_second = models.FloatField(null=True, blank=True)
    reasoning_ms = models.FloatField(
        null=True,
        blank=True,
        help_text="Milliseconds from the first reasoning token to the first text token.",
    )
    reasoning_tokens = models.PositiveIntegerField(
        null=True, blank=True, help_text="Tokens of its thought, as far as they arrived."
    )
    cut_before_message = models.BigIntegerField(
        null=True, blank=True, help_text="First message in its prompt if the beginning was cut."
    )
    system_prompt = models.ForeignKey(
        SystemPrompt, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    prompt_prefix = models.JSONField(
        default=dict, blank=True, help_text="JSON of PromptPrefix: what its prompt began with."
    )
    reprocessed_tokens = models.PositiveIntegerField(
        default=0, help_text="Prompt tokens that the server had processed before, and did again."
    )
    reprocessed_reason = models.TextField(
        blank=True, default="", help_text="The reason, as the end of a sentence."
    )
    finished = models.DateTimeField(null=True, blank=True)
    rating = models.SmallIntegerField(
        choices=Rating, null=True, blank=True, help_text="What its reader thinks of it."
    )
    rating_note = models.CharField(max_length=1000, blank=True, default="")

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
                fields=["conversation"],
                condition=models.Q(rating__isnull=False),
                name="chat_message_rated",
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
    def answer_request(self) -> AnswerRequest:
        return AnswerRequest.from_json(self.request)

    @property
    def sent_prefix(self) -> PromptPrefix:
        return PromptPrefix.from_json(self.prompt_prefix)

    @property
    def waits_for_approval(self) -> bool:
        """True while a tool call waits for a person."""
        return any(call.state == CallState.WAITING for call in self.tool_calls.all())

    @property
    def can_continue(self) -> bool:
        """True if it has text or calls that another answer could begin with."""
        return bool(self.content.strip()) or bool(self.tool_calls.all())

    @property
    def length_limit(self) -> str:
        """Sentence on the limit that ended the answer; "" if it ended without one."""
        if self.finish_reason != "length":
            return ""
        if self.completion_tokens is None or self.max_tokens is None:
            return "Stopped: max tokens reached"
        if self.completion_tokens >= self.max_tokens:
            return f"Stopped at max tokens ({self.max_tokens:,})"
        total = (self.prompt_tokens or 0) + self.completion_tokens
        return f"Stopped: the context is full ({total:,} tokens)"

    @property
    def empty_reason(self) -> str:
        """Sentence on why a finished answer has no text; "" if it has some, or an error."""
        has_other = self.content.strip() or self.error_code or self.tool_calls.all()
        if has_other or self.status != Status.COMPLETE:
            return ""
        if not self.reasoning.strip():
            return "The answer is empty: the model ended it at once."
        if self.finish_reason in {"length", THOUGHT_TOO_LONG}:
            spent = f"all {self.completion_tokens:,}" if self.completion_tokens else "all its"
            return f"The model spent {spent} tokens thinking and wrote no answer."
        return "The model ended after its thinking and wrote no answer."

    @property
    def rating_word(self) -> RatingWord | None:
        """The rating by its reader, as the API says it."""
        if self.rating is None:
            return None
        return "up" if self.rating == Rating.UP else "down"

    @property
    def seconds(self) -> float | None:
        """Seconds from the question to the end; None where that is not known."""
        is_measured = self.prompt_tokens is not None or self.ttft_ms is not None
        if self.finished is None or not is_measured:
            return None
        return (self.finished - self.created).total_seconds()

    @property
    def is_all_thought(self) -> bool:
        """True if it ended with a thought and without an answer."""
        return bool(self.empty_reason and self.reasoning.strip())

    @property
    def cached_share(self) -> float | None:
        """Share of the prompt that came from the prompt cache, 0 to 1; None if not reported."""
        if not self.prompt_tokens or self.cached_tokens is None:
            return None
        return self.cached_tokens / self.prompt_tokens

    @property
    def usage(self) -> Usage | None:
        """Token counts and timings; None if nothing was measured."""
        if self.prompt_tokens is None:
            return None
        return Usage(
            self.prompt_tokens,
            self.cached_tokens,
            self.completion_tokens,
            self.ttft_ms,
            self.tokens_per_second,
        )
