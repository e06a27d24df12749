"""The servers whose tools people may use. Managed by staff: a command runs on this machine."""

import shlex
from dataclasses import dataclass, field
from typing import Any

from django.db import models

from apps.core import crypto


class Transport(models.TextChoices):
    HTTP = "http", "Streamable HTTP"
    STDIO = "stdio", "A command on this machine"


@dataclass(frozen=True)
class Target:
    """What a connection needs to know. Two that are equal lead to the same place."""

    pk: int
    transport: str
    url: str = ""
    key: str = field(default="", repr=False)
    command: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)


class ToolServer(models.Model):
    """A server of tools. Everybody may switch its tools on in his conversations."""

    name = models.CharField(max_length=60, unique=True)
    # Begins the names of its tools, which stand in prompts and in conversations: it never changes.
    slug = models.CharField(max_length=20, unique=True, editable=False)
    transport = models.CharField(max_length=10, choices=Transport, default=Transport.HTTP)
    url = models.CharField(max_length=500, blank=True, default="")
    command = models.TextField(blank=True, default="", help_text="As it is typed in a shell.")
    encrypted_key = models.TextField(blank=True, default="")
    encrypted_environment = models.TextField(blank=True, default="", help_text="NAME=value lines")
    enabled = models.BooleanField(default=True)
    created = models.DateTimeField(auto_now_add=True)

    # What was last seen of it.
    tools = models.JSONField(
        default=list, blank=True, help_text="name, tool, title, description and parameters of each."
    )
    left_out = models.JSONField(default=list, blank=True, help_text="Sentences: which, and why.")
    looked = models.DateTimeField(null=True, blank=True, help_text="When it told its tools.")
    error = models.TextField(blank=True, default="")
    error_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_command(self) -> bool:
        return self.transport == Transport.STDIO

    @property
    def where(self) -> str:
        """Its address or its command, for staff."""
        return self.command if self.is_command else self.url

    @property
    def environment(self) -> dict[str, str]:
        """Raises:
        SecretLost: SECRET_KEY has changed since.
        """
        lines = crypto.decrypt(self.encrypted_environment).splitlines()
        return dict(line.split("=", 1) for line in lines)

    def target(self) -> Target:
        """Raises:
        SecretLost: SECRET_KEY has changed since.
        """
        if self.is_command:
            environment = tuple(sorted(self.environment.items()))
            command = tuple(shlex.split(self.command))
            return Target(self.pk, self.transport, command=command, environment=environment)
        key = crypto.decrypt(self.encrypted_key)
        return Target(self.pk, self.transport, url=self.url, key=key)

    def forget(self) -> None:
        """It is another server now: what was seen of it says nothing any more."""
        self.tools, self.left_out, self.looked = [], [], None
        self.error, self.error_since = "", None

    def as_seen(self) -> dict[str, Any]:
        """The fields that a look at it changes."""
        names = ("tools", "left_out", "looked", "error", "error_since")
        return {name: getattr(self, name) for name in names}
