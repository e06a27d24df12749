"""Conversations, their tags, and copies shared with others."""

import uuid
from typing import Self

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, User
from django.db import models
from django.utils import timezone

from apps.chat.models.documents import DocumentPrefix
from apps.chat.models.presets import Preset, SystemPrompt
from apps.chat.models.projects import Project
from apps.chat.models.stored_json import SamplingParams, ToolSettings
from apps.core.models import Owned, OwnedQuerySet
from apps.servers.models import Server

TITLE_LENGTH = 80


class Tag(Owned):
    """A label that a person gives to conversations."""

    name = models.CharField(max_length=40)

    objects = OwnedQuerySet["Tag"].as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="chat_tag_name")]

    def __str__(self) -> str:
        return self.name


class ConversationQuerySet(OwnedQuerySet["Conversation"]):
    def owned_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        """Return the rows of a user, for lists, searches and exports: none deleted or temporary."""
        return self.open_to(user).filter(temporary_until=None)

    def open_to(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        """Return the rows that a user can open by their keys: temporary ones too."""
        return super().owned_by(user).filter(deleted_at=None)

    def deleted_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        return super().owned_by(user).exclude(deleted_at=None)


class ConversationManager(models.Manager["Conversation"]):
    """Starts without drafts, so that no list, search or export has one.

    `owned_by` leaves out temporary ones as well.
    """

    def get_queryset(self) -> ConversationQuerySet:
        return ConversationQuerySet(self.model, using=self._db).filter(is_draft=False)

    def owned_by(self, user: AbstractBaseUser | AnonymousUser) -> ConversationQuerySet:
        return self.get_queryset().owned_by(user)

    def open_to(self, user: AbstractBaseUser | AnonymousUser) -> ConversationQuerySet:
        return self.get_queryset().open_to(user)

    def deleted_by(self, user: AbstractBaseUser | AnonymousUser) -> ConversationQuerySet:
        return self.get_queryset().deleted_by(user)


class Conversation(Owned):
    """A chat of one person with a model. `active_leaf` is the last message of the active branch."""

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
    params = models.JSONField(default=dict, blank=True, help_text="JSON of SamplingParams.")
    tools = models.JSONField(default=dict, blank=True, help_text="JSON of ToolSettings.")
    response_format = models.JSONField(
        default=dict, blank=True, help_text="As in the OpenAI API. Empty: free text."
    )
    preset = models.ForeignKey(
        Preset,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The preset that was applied last; its settings were copied.",
    )
    other_models = models.JSONField(
        default=list, blank=True, help_text="Keys of models that answer next to the first."
    )
    is_draft = models.BooleanField(
        default=False, help_text="Holds the settings of its owner's next chat; has no messages."
    )
    draft_project = models.OneToOneField(
        Project,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="draft",
        help_text="Of a draft: the project of the next chat.",
    )
    active_leaf = models.ForeignKey(
        "Message", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    updated = models.DateTimeField(auto_now=True)
    project = models.ForeignKey(
        Project, on_delete=models.SET_NULL, null=True, blank=True, related_name="conversations"
    )
    documents = models.ForeignKey(
        DocumentPrefix,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The whole documents in its prompts. Set at its first message.",
    )
    unread = models.BooleanField(
        default=False, help_text="An answer was completed, and no page has shown it."
    )
    pinned = models.BooleanField(default=False)
    archived = models.BooleanField(default=False)
    tags = models.ManyToManyField(Tag, blank=True, related_name="conversations")
    source = models.CharField(
        max_length=200, blank=True, default="", help_text="Program and ID it was imported from."
    )
    deleted_at = models.DateTimeField(null=True, blank=True)
    temporary_until = models.DateTimeField(
        null=True, blank=True, help_text="Deleted permanently then. Empty: it is kept."
    )

    objects = ConversationManager()
    drafts = ConversationQuerySet.as_manager()

    class Meta:
        ordering = ["-updated", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner"],
                condition=models.Q(is_draft=True, draft_project=None),
                name="chat_one_draft",
            )
        ]
        indexes = [
            models.Index(fields=["owner", "-updated", "-id"], name="chat_conversation_list"),
            models.Index(
                fields=["deleted_at"],
                condition=models.Q(deleted_at__isnull=False),
                name="chat_conversation_deleted",
            ),
            models.Index(
                fields=["temporary_until"],
                condition=models.Q(temporary_until__isnull=False),
                name="chat_conversation_temporary",
            ),
        ]

    def __str__(self) -> str:
        return self.title or "New chat"

    @property
    def tool_settings(self) -> ToolSettings:
        return ToolSettings.from_json(self.tools)

    @property
    def sampling(self) -> SamplingParams:
        return SamplingParams.from_json(self.params)

    @classmethod
    def of(cls, user: User, pk: int) -> "Conversation | None":
        """Return the user's conversation; None if not theirs, or if its time has passed.

        What it refers to is fetched when it is needed: a join of all of it costs more, and a
        conversation with the default server and no prompt has none of it.
        """
        try:
            found = cls.objects.open_to(user).get(pk=pk)
        except cls.DoesNotExist:
            return None
        until = found.temporary_until
        return found if until is None or until > timezone.now() else None


class Share(Owned):
    """A read-only copy of a conversation, for everyone with an account and the link."""

    token = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="shares")
    title = models.CharField(max_length=TITLE_LENGTH)
    messages = models.JSONField(help_text="List of role, content, reasoning and model.")

    objects = OwnedQuerySet["Share"].as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.title
