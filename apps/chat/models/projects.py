"""Projects: folders of conversations that share instructions and a model."""

from django.db import models

from apps.chat.models.presets import Preset, SystemPrompt
from apps.core.models import Owned, OwnedQuerySet
from apps.servers.models import Server


class Project(Owned):
    """A folder of conversations. A new one in it starts with the settings of the project.

    They are copied: a conversation does not change when its project does.
    """

    name = models.CharField(max_length=100)
    system_prompt = models.ForeignKey(
        SystemPrompt,
        on_delete=models.RESTRICT,
        null=True,
        blank=True,
        related_name="+",
        help_text="The instructions.",
    )
    preset = models.ForeignKey(
        Preset, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    server = models.ForeignKey(
        Server,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Empty: that of the preset.",
    )
    model = models.CharField(max_length=300, blank=True)

    objects = OwnedQuerySet["Project"].as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="chat_project_name")]

    def __str__(self) -> str:
        return self.name
