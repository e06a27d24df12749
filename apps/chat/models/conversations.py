"""Conversations, what they are kept under, and copies of them for others."""

import uuid
from typing import Self

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, User
from django.db import models

from apps.chat.models.presets import SystemPrompt
from apps.core.models import Owned, OwnedQuerySet
from apps.servers.models import Server

TITLE_LENGTH = 80


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
        return super().owned_by(user).filter(deleted_at=None)

    def removed_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        return super().owned_by(user).exclude(deleted_at=None)


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
    response_format = models.JSONField(
        default=dict, blank=True, help_text="As the OpenAI API has it. Empty: free text."
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
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = ConversationQuerySet.as_manager()

    class Meta:
        ordering = ["-updated", "-pk"]
        indexes = [
            models.Index(fields=["owner", "-updated", "-id"], name="chat_conversation_list"),
            models.Index(
                fields=["deleted_at"],
                condition=models.Q(deleted_at__isnull=False),
                name="chat_conversation_deleted",
            ),
        ]

    def __str__(self) -> str:
        return self.title or "New chat"

    @classmethod
    def of(cls, user: User, pk: int) -> "Conversation | None":
        """Return the user's conversation of that number.

        Without what it refers to: most refer to no server and no prompt, and the query with all
        three takes a third of the time of asking a question.
        """
        return cls.objects.owned_by(user).filter(pk=pk).first()


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
