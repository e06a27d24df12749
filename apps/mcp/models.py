"""Tool servers: shared ones, which admins manage, and personal ones.

A command runs on this machine, so only admins add one.
"""

import shlex
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self, TypedDict

from django.conf import settings
from django.db import models
from django.db.models import Q

from apps.core import crypto
from apps.core.schemas.json_types import JsonObject


class Transport(models.TextChoices):
    HTTP = "http", "Streamable HTTP"
    STDIO = "stdio", "Command on this machine"


SECRETS = ("encrypted_key", "encrypted_headers", "encrypted_environment")


@dataclass(frozen=True)
class Target:
    """The address and secrets of a connection. Equal targets share a session."""

    pk: int
    transport: str
    url: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    allow_private: bool = False
    """True if its address may be in a private network."""
    command: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)


class CheckResult(TypedDict):
    """The fields of a tool server that a check writes."""

    tools: list[JsonObject]
    skipped_tools: list[str]
    checked_at: datetime | None
    error: str
    error_output: str
    error_since: datetime | None


class ToolServerQuerySet(models.QuerySet["ToolServer"]):
    def visible_to(self, person: int) -> Self:
        """Return shared servers and the person's own."""
        return self.filter(Q(owner=None) | Q(owner=person))

    def usable_by(self, person: int) -> Self:
        """Return the servers whose tools this person may use now."""
        seen = self.visible_to(person).filter(enabled=True)
        return seen if settings.MCP_OWN else seen.filter(owner=None)


class ToolServer(models.Model):
    """A tool server. Whoever sees it may turn its tools on in their chats."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        editable=False,
        related_name="+",
        help_text="The only person who sees and uses it. Empty: shared, and managed by admins.",
    )
    name = models.CharField(max_length=60)
    # Begins the names of its tools, which are stored in prompts and chats: it never changes.
    slug = models.CharField(max_length=20, editable=False)
    transport = models.CharField(max_length=10, choices=Transport, default=Transport.HTTP)
    url = models.CharField(max_length=500, blank=True, default="")
    command = models.TextField(blank=True, default="", help_text="As it is typed in a shell.")
    encrypted_key = models.TextField(blank=True, default="")
    encrypted_headers = models.TextField(blank=True, default="", help_text="Name: value lines")
    encrypted_environment = models.TextField(blank=True, default="", help_text="NAME=value lines")
    enabled = models.BooleanField(default=True)
    created = models.DateTimeField(auto_now_add=True)

    # The result of the last check.
    tools = models.JSONField(
        default=list, blank=True, help_text="name, tool, title, description and parameters of each."
    )
    skipped_tools = models.JSONField(
        default=list, blank=True, help_text="Sentences: the tool and the reason."
    )
    checked_at = models.DateTimeField(
        null=True, blank=True, help_text="When it last listed its tools."
    )
    error = models.TextField(blank=True, default="")
    error_output = models.TextField(
        blank=True, default="", help_text="Last output of its command. May contain a key."
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
    def location(self) -> str:
        """Its address or its command, for people who may change it."""
        return self.command if self.is_command else self.url

    @property
    def group(self) -> str:
        """The heading of its tools, unique among the servers that one person sees."""
        return self.name if self.owner_id is None else f"{self.name} (yours)"

    @property
    def headers(self) -> dict[str, str]:
        """HTTP headers of every request.

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
            allow_private=settings.MCP_PRIVATE_URLS if shared else settings.MCP_OWN_PRIVATE_URLS,
        )

    def reset_check(self) -> None:
        """Clear the results of checks, because the server is now another one."""
        self.tools, self.skipped_tools, self.checked_at = [], [], None
        self.error, self.error_output, self.error_since = "", "", None

    def connection_fields(self) -> dict[str, str]:
        """Return the fields of its address and secrets. A change makes it another server."""
        names = ("transport", "url", "command", *SECRETS)
        return {name: getattr(self, name) for name in names}

    def check_result(self) -> CheckResult:
        """Return the fields that a check changes."""
        return CheckResult(
            tools=self.tools,
            skipped_tools=self.skipped_tools,
            checked_at=self.checked_at,
            error=self.error,
            error_output=self.error_output,
            error_since=self.error_since,
        )
