"""System prompts, presets and preferences."""

from typing import Self

from django.conf import settings
from django.db import models

from apps.chat.models.stored_json import SamplingParams, ToolSettings
from apps.core.models import Owned, OwnedQuerySet
from apps.servers.models import Server


class SystemPromptQuerySet(OwnedQuerySet["SystemPrompt"]):
    def latest_versions(self) -> Self:
        """Return the newest version of each name."""
        newer = models.Q(
            owner_id=models.OuterRef("owner_id"),
            name=models.OuterRef("name"),
            version__gt=models.OuterRef("version"),
        )
        return self.filter(~models.Exists(SystemPrompt.objects.filter(newer)))


class SystemPrompt(Owned):
    """One version of a named system prompt. A changed text is a new version.

    Conversations that share a version send the same bytes first, so the server can reuse its
    prompt cache.
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


class PromptQuerySet(OwnedQuerySet["Prompt"]):
    def latest_versions(self) -> Self:
        """Return the newest version of each name."""
        newer = models.Q(
            owner_id=models.OuterRef("owner_id"),
            name=models.OuterRef("name"),
            version__gt=models.OuterRef("version"),
        )
        return self.filter(~models.Exists(Prompt.objects.filter(newer)))


class Prompt(Owned):
    """One version of a message that a person writes often; `{{name}}` in it is a variable."""

    name = models.CharField(max_length=60)
    version = models.PositiveIntegerField(default=1)
    text = models.TextField()

    objects = PromptQuerySet.as_manager()

    class Meta:
        ordering = ["name", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "name", "version"], name="chat_prompt_version")
        ]

    def __str__(self) -> str:
        return self.name


class Preset(Owned):
    """A model, a system prompt, sampling parameters and tools under one name.

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
    response_format = models.JSONField(default=dict, blank=True)
    tools = models.JSONField(
        null=True,
        blank=True,
        help_text="JSON of ToolSettings. Empty: a conversation keeps its own.",
    )

    objects = OwnedQuerySet["Preset"].as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="chat_preset_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def sampling(self) -> SamplingParams:
        return SamplingParams.from_json(self.params)

    @property
    def tool_settings(self) -> ToolSettings | None:
        return None if self.tools is None else ToolSettings.from_json(self.tools)


class Preferences(models.Model):
    """Settings of one person for all their chats."""

    owner = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    prefill_drafts = models.BooleanField(
        default=True, help_text="Send drafts to the model server while they are typed."
    )
    favourite_models = models.JSONField(
        default=list, blank=True, help_text="Keys of models, as in a conversation's other_models."
    )

    def __str__(self) -> str:
        return f"Preferences of {self.owner_id}"
