"""Adds or changes a server of tools. For staff alone: a command is code that runs here."""

import re
import shlex
from typing import Any

from django import forms
from django.conf import settings
from django.core.validators import RegexValidator

from apps.core import crypto
from apps.mcp.models import ToolServer, Transport

# As of model servers: no user name, password or backslash in it. A query may be.
ADDRESS = RegexValidator(
    r"^https?://[\w.:\[\]-]+(/[\w./~%-]*)?(\?[\w.~%=&-]*)?$",
    "Enter an address such as http://127.0.0.1:8000/mcp.",
)
SLUG_CHARACTERS = 16


class ToolServerForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs alone
    """The stored key and environment are never shown; left empty, they stay."""

    api_key = forms.CharField(
        required=False,
        label="Key",
        help_text="Sent as a bearer token. Stored encrypted, never shown again.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    environment = forms.CharField(
        required=False,
        label="Environment",
        help_text="NAME=value, one a line. Stored encrypted, never shown again.",
        widget=forms.Textarea(attrs={"rows": 2, "autocomplete": "off", "spellcheck": "false"}),
    )
    forget = forms.BooleanField(required=False, label="Forget the stored key and environment")

    class Meta:
        model = ToolServer
        fields = ["name", "transport", "url", "command", "enabled"]
        labels = {
            "transport": "Reached by",
            "url": "Address",
            "command": "Command",
            "enabled": "Its tools can be used",
        }
        help_texts = {
            "url": "For streamable HTTP: such as http://127.0.0.1:8000/mcp",
            "command": "For a command: it runs on this machine as the user of the workbench, with "
            "all that user may do. Such as npx -y @modelcontextprotocol/server-everything",
        }
        error_messages = {"name": {"unique": "There is a tool server of this name already."}}
        widgets = {
            "command": forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"})
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        server: ToolServer = self.instance
        self.was = _reached(server)
        if not server.encrypted_key and not server.encrypted_environment:
            del self.fields["forget"]
        if not settings.MCP_COMMANDS:
            for name in ("transport", "command", "environment"):
                del self.fields[name]
        self.order_fields(
            ["name", "transport", "url", "api_key", "command", "environment", "forget", "enabled"]
        )

    def clean_command(self) -> str:
        command: str = self.cleaned_data["command"].strip()
        try:
            shlex.split(command)
        except ValueError as error:
            raise forms.ValidationError("A quotation mark is not closed.") from error
        if "\0" in command:
            raise forms.ValidationError("It has a character in it that no command has.")
        return command

    def clean_environment(self) -> str:
        lines = [line.strip() for line in self.cleaned_data["environment"].strip().splitlines()]
        for number, line in enumerate(lines, start=1):
            name, equals, value = line.partition("=")
            if not equals or not name.isidentifier() or "\0" in value:
                raise forms.ValidationError(f"Line {number} is not NAME=value.")
        return "\n".join(lines)

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        transport = given.get("transport", self.instance.transport)
        if transport == Transport.STDIO and "command" in given and not given["command"]:
            self.add_error("command", "Enter the command that starts the server.")
        if transport == Transport.HTTP and "url" in given:
            try:
                ADDRESS(given["url"])
            except forms.ValidationError as error:
                self.add_error("url", error)
        return given

    def save(self, commit: bool = True) -> Any:
        server: ToolServer = self.instance
        if self.cleaned_data.get("forget"):
            server.encrypted_key = server.encrypted_environment = ""
        if key := self.cleaned_data["api_key"]:
            server.encrypted_key = crypto.encrypt(key)
        if environment := self.cleaned_data.get("environment"):
            server.encrypted_environment = crypto.encrypt(environment)
        if not server.slug:
            server.slug = free_slug(server.name)
        if _reached(server) != self.was:
            server.forget()
        return super().save(commit)


def _reached(server: ToolServer) -> tuple[str, ...]:
    secrets = (server.encrypted_key, server.encrypted_environment)
    return (server.transport, server.url, server.command, *secrets)


def free_slug(name: str) -> str:
    """The short name that begins the names of a new server's tools."""
    wanted = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:SLUG_CHARACTERS] or "tools"
    taken = set(ToolServer.objects.values_list("slug", flat=True))
    found, number = wanted, 1
    while found in taken:
        number += 1
        found = f"{wanted}{number}"
    return found
