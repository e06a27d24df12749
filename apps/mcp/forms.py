"""The form of a tool server, shared or personal.

A command is code that runs here, so a personal server cannot have one.
"""

import re
import shlex
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.db.models import Q

from apps.core import crypto
from apps.mcp import addresses
from apps.mcp.models import SECRETS, ToolServer, Transport

SLUG_CHARACTERS = 16
MAX_OWN = 10
"""Servers of one person: each may have a hundred tools and connections of its own."""
HEADER = re.compile(r"([A-Za-z0-9_-]{1,100}): ?([\x20-\x7e]{1,4000})")
# Set by the protocol and the connection itself.
RESERVED_HEADERS = re.compile(
    r"host|connection|accept.*|content-.*|transfer-.*|mcp-.*|te|upgrade", re.I
)


class ToolServerForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs alone
    """The stored key, headers and environment are never shown; left empty, they stay.

    They do not follow a changed address: at another host they have to be entered again.
    """

    api_key = forms.CharField(
        required=False,
        label="API key",
        help_text="Sent as a bearer token. Stored encrypted and never shown again.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    headers = forms.CharField(
        required=False,
        label="Headers",
        help_text="Extra headers as “Name: value”, one per line. Stored encrypted and never shown "
        "again.",
        widget=forms.Textarea(attrs={"rows": 2, "autocomplete": "off", "spellcheck": "false"}),
    )
    environment = forms.CharField(
        required=False,
        label="Environment",
        help_text="NAME=value, one per line. Stored encrypted and never shown again.",
        widget=forms.Textarea(attrs={"rows": 2, "autocomplete": "off", "spellcheck": "false"}),
    )
    forget = forms.BooleanField(required=False, label="Delete stored secrets")

    class Meta:
        model = ToolServer
        fields = ["name", "transport", "url", "command", "enabled"]
        labels = {
            "transport": "Transport",
            "url": "Address",
            "command": "Command",
            "enabled": "Enabled",
        }
        help_texts = {
            "url": "For streamable HTTP, e.g. http://127.0.0.1:8000/mcp",
            "command": "Runs on this machine with the permissions of the Workbench process, "
            "e.g. npx -y @modelcontextprotocol/server-everything",
        }
        widgets = {
            "command": forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"})
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        server: ToolServer = self.instance
        self.stored = server.connection_fields()
        if not any(self.stored[name] for name in SECRETS):
            del self.fields["forget"]
        is_own = server.owner_id is not None
        if is_own or not settings.MCP_COMMANDS:
            for name in ("transport", "command", "environment"):
                del self.fields[name]
        if is_own:
            where = "" if settings.MCP_OWN_PRIVATE_URLS else " It must be a public address."
            self.fields["url"].help_text = f"e.g. https://tools.example.org/mcp.{where}"
        self.order_fields(
            ["name", "transport", "url", "api_key", "headers", "command", "environment", "forget"]
        )

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        others = ToolServer.objects.filter(owner=self.instance.owner).exclude(pk=self.instance.pk)
        if others.filter(name=name).exists():
            raise forms.ValidationError("A tool server with this name already exists.")
        return name

    def clean_headers(self) -> str:
        return _parse_lines(
            self.cleaned_data["headers"], _parse_header, "a header such as X-Api-Key: abc"
        )

    def clean_command(self) -> str:
        command: str = self.cleaned_data["command"].strip()
        try:
            shlex.split(command)
        except ValueError as error:
            raise forms.ValidationError("A closing quotation mark is missing.") from error
        if "\0" in command:
            raise forms.ValidationError("The command contains an invalid character.")
        return command

    def clean_environment(self) -> str:
        return _parse_lines(self.cleaned_data["environment"], _parse_variable, "NAME=value")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        owner = self.instance.owner if self.instance.pk is None else None
        if owner is not None and ToolServer.objects.filter(owner=owner).count() >= MAX_OWN:
            raise forms.ValidationError(
                f"You have reached the limit of {MAX_OWN} tool servers. Remove one first."
            )
        transport = data.get("transport", self.instance.transport)
        if transport == Transport.STDIO and "command" in data and not data["command"]:
            self.add_error("command", "Enter the command that starts the server.")
        if transport == Transport.HTTP and "url" in data:
            is_own = self.instance.owner_id is not None
            try:
                addresses.check(
                    data["url"], allow_private=not is_own or settings.MCP_OWN_PRIVATE_URLS
                )
            except forms.ValidationError as error:
                self.add_error("url", error)
        return data

    def save(self, commit: bool = True) -> Any:
        server: ToolServer = self.instance
        if self.cleaned_data.get("forget") or origin(server.url) != origin(self.stored["url"]):
            # Another host must not receive the secrets stored for this one.
            server.encrypted_key = server.encrypted_headers = server.encrypted_environment = ""
        if key := self.cleaned_data["api_key"]:
            server.encrypted_key = crypto.encrypt(key)
        if headers := self.cleaned_data["headers"]:
            server.encrypted_headers = crypto.encrypt(headers)
        if environment := self.cleaned_data.get("environment"):
            server.encrypted_environment = crypto.encrypt(environment)
        if not server.slug:
            server.slug = unused_slug(server)
        if server.connection_fields() != self.stored:
            server.reset_check()
        return super().save(commit)


def origin(url: str) -> tuple[str, str]:
    """Return the scheme, and the host with its port."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _parse_lines(text: str, parse: Callable[[str], str], shape: str) -> str:
    """Return the lines as they are stored.

    Args:
        parse: returns the line as it is stored, or "" for an invalid one.
        shape: an example of a valid line.

    Raises:
        ValidationError: a line is invalid.
    """
    lines = [parse(line.strip()) for line in text.strip().splitlines()]
    if "" in lines:
        raise forms.ValidationError(f"Line {lines.index('') + 1} is not {shape}.")
    return "\n".join(lines)


def _parse_variable(line: str) -> str:
    name, equals, value = line.partition("=")
    return line if equals and name.isidentifier() and "\0" not in value else ""


def _parse_header(line: str) -> str:
    found = HEADER.fullmatch(line)
    return f"{found[1]}: {found[2]}" if found and not RESERVED_HEADERS.fullmatch(found[1]) else ""


def unused_slug(server: ToolServer) -> str:
    """Return a short name for a new server, which begins the names of its tools.

    It is unique among the servers that one person sees: a shared one among all.
    """
    wanted = re.sub(r"[^a-z0-9]+", "_", server.name.lower()).strip("_")[:SLUG_CHARACTERS]
    wanted = wanted or "tools"
    visible = Q() if server.owner is None else Q(owner=None) | Q(owner=server.owner)
    taken = set(ToolServer.objects.filter(visible).values_list("slug", flat=True))
    found, number = wanted, 1
    while found in taken:
        number += 1
        found = f"{wanted}{number}"
    return found
