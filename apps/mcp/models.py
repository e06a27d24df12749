"""The servers whose tools people may use: staff's for everybody, and each person's own.

A command runs on this machine, so only staff adds one.
"""

import shlex
from dataclasses import dataclass, field
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Q

from apps.core import crypto


class Transport(models.TextChoices):
    HTTP = "http", "Streamable HTTP"
    STDIO = "stdio", "Command on this machine"


SECRETS = ("encrypted_key", "encrypted_headers", "encrypted_environment")


@dataclass(frozen=True)
class Target:
    """What a connection needs to know. Two that are equal lead to the same place."""

    pk: int
    transport: str
    url: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    may_be_private: bool = False
    """Whether its address may be in a private network."""
    command: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)


class ToolServerQuerySet(models.QuerySet["ToolServer"]):
    def seen_by(self, person: int) -> Self:
        """Those for everybody and their own: another person's are not there."""
        return self.filter(Q(owner=None) | Q(owner=person))

    def usable_by(self, person: int) -> Self:
        """Those whose tools may be used now."""
        seen = self.seen_by(person).filter(enabled=True)
        return seen if settings.MCP_OWN else seen.filter(owner=None)


class ToolServer(models.Model):
    """A server of tools. Who sees it may switch its tools on in his conversations."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        editable=False,
        related_name="+",
        help_text="Who alone sees and uses it. Empty: everybody does, and staff manages it.",
    )
    name = models.CharField(max_length=60)
    # Begins the names of its tools, which stand in prompts and in conversations: it never changes.
    slug = models.CharField(max_length=20, editable=False)
    transport = models.CharField(max_length=10, choices=Transport, default=Transport.HTTP)
    url = models.CharField(max_length=500, blank=True, default="")
    command = models.TextField(blank=True, default="", help_text="As it is typed in a shell.")
    encrypted_key = models.TextField(blank=True, default="")
    encrypted_headers = models.TextField(blank=True, default="", help_text="Name: value lines")
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
    error_words = models.TextField(
        blank=True, default="", help_text="What its command said last. It may hold a key."
    )
    error_since = models.DateTimeField(null=True, blank=True)

    objects = ToolServerQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], name="mcp_own_name"),
            models.UniqueConstraint(fields=["owner", "slug"], name="mcp_own_slug"),
            models.UniqueConstraint(
                fields=["name"], condition=Q(owner=None), name="mcp_shared_name"
            ),
            models.UniqueConstraint(
                fields=["slug"], condition=Q(owner=None), name="mcp_shared_slug"
            ),
            models.CheckConstraint(
                condition=Q(owner=None) | Q(transport=Transport.HTTP), name="mcp_own_is_no_command"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_command(self) -> bool:
        return self.transport == Transport.STDIO

    @property
    def where(self) -> str:
        """Its address or its command, for who may change it."""
        return self.command if self.is_command else self.url

    @property
    def group(self) -> str:
        """What its tools stand under. No two that a person sees have the same."""
        return self.name if self.owner_id is None else f"{self.name} (yours)"

    @property
    def headers(self) -> dict[str, str]:
        """What is sent to it with every request.

        Raises:
            SecretLost: SECRET_KEY has changed since.
        """
        key = crypto.decrypt(self.encrypted_key)
        lines = crypto.decrypt(self.encrypted_headers).splitlines()
        named = dict(line.split(": ", 1) for line in lines)
        return ({"Authorization": f"Bearer {key}"} if key else {}) | named

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
        shared = self.owner_id is None
        return Target(
            self.pk,
            self.transport,
            url=self.url,
            headers=tuple(sorted(self.headers.items())),
            may_be_private=settings.MCP_PRIVATE_URLS if shared else settings.MCP_OWN_PRIVATE_URLS,
        )

    def forget(self) -> None:
        """It is another server now: what was seen of it says nothing any more."""
        self.tools, self.left_out, self.looked = [], [], None
        self.error, self.error_words, self.error_since = "", "", None

    def reached(self) -> dict[str, str]:
        """The fields that say where it is and with which secrets: others make it another server."""
        names = ("transport", "url", "command", *SECRETS)
        return {name: getattr(self, name) for name in names}

    def as_seen(self) -> dict[str, Any]:
        """The fields that a look at it changes."""
        names = ("tools", "left_out", "looked", "error", "error_words", "error_since")
        return {name: getattr(self, name) for name in names}
