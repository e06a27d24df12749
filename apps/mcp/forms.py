"""Adds or changes a server of tools: one for everybody, or somebody's own.

A command is code that runs here: there is none in the form of one's own.
"""

import re
import shlex
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.core.validators import RegexValidator
from django.db.models import Q

from apps.core import crypto
from apps.mcp.models import SECRETS, ToolServer, Transport

# As of model servers: no user name, password or backslash in it. A query may be.
ADDRESS = RegexValidator(
    r"^https?://[\w.:\[\]-]+(/[\w./~%-]*)?(\?[\w.~%=&-]*)?$",
    "Enter an address such as http://127.0.0.1:8000/mcp.",
)
SLUG_CHARACTERS = 16
MOST_OWN = 10
"""Servers of one person: each may have a hundred tools, and is connected to for him alone."""
HEADER = re.compile(r"([A-Za-z0-9_-]{1,100}): ?([\x20-\x7e]{1,4000})")
# What the protocol and the connection itself say.
TAKEN_HEADERS = re.compile(
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
        help_text="Name: value, one a line, where it wants more than a key. Stored encrypted, "
        "never shown again.",
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
            "command": "For a command: it runs on this machine as the user of the workbench, with "
            "all that user may do. Such as npx -y @modelcontextprotocol/server-everything",
        }
        widgets = {
            "command": forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"})
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        server: ToolServer = self.instance
        self.was = server.reached()
        if not any(self.was[name] for name in SECRETS):
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
        return _lines_of(self.cleaned_data["headers"], _header, "a header such as X-Api-Key: abc")

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
        return _lines_of(self.cleaned_data["environment"], _variable, "NAME=value")

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        owner = self.instance.owner if self.instance.pk is None else None
        if owner is not None and ToolServer.objects.filter(owner=owner).count() >= MOST_OWN:
            raise forms.ValidationError(
                f"You have {MOST_OWN} tool servers of your own, which is the most. "
                "Remove one first."
            )
        transport = given.get("transport", self.instance.transport)
        if transport == Transport.STDIO and "command" in given and not given["command"]:
            self.add_error("command", "Enter the command that starts the server.")
        if transport == Transport.HTTP and "url" in given:
            try:
                ADDRESS(given["url"])
                _ = urlsplit(given["url"]).port  # brackets and ports are looked at here
            except forms.ValidationError as error:
                self.add_error("url", error)
            except ValueError:
                self.add_error("url", ADDRESS.message)
        return given

    def save(self, commit: bool = True) -> Any:
        server: ToolServer = self.instance
        if self.cleaned_data.get("forget") or origin(server.url) != origin(self.was["url"]):
            # Another host is not to be sent what was stored for this one.
            server.encrypted_key = server.encrypted_headers = server.encrypted_environment = ""
        if key := self.cleaned_data["api_key"]:
            server.encrypted_key = crypto.encrypt(key)
        if headers := self.cleaned_data["headers"]:
            server.encrypted_headers = crypto.encrypt(headers)
        if environment := self.cleaned_data.get("environment"):
            server.encrypted_environment = crypto.encrypt(environment)
        if not server.slug:
            server.slug = free_slug(server)
        if server.reached() != self.was:
            server.forget()
        return super().save(commit)


def origin(url: str) -> tuple[str, str]:
    """Scheme, host and port of an address."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _lines_of(text: str, read: Callable[[str], str], shape: str) -> str:
    """The lines as they are kept.

    Raises:
        ValidationError: one is not of that shape: `read` gives "" for it.
    """
    lines = [read(line.strip()) for line in text.strip().splitlines()]
    if "" in lines:
        raise forms.ValidationError(f"Line {lines.index('') + 1} is not {shape}.")
    return "\n".join(lines)


def _variable(line: str) -> str:
    name, equals, value = line.partition("=")
    return line if equals and name.isidentifier() and "\0" not in value else ""


def _header(line: str) -> str:
    found = HEADER.fullmatch(line)
    return f"{found[1]}: {found[2]}" if found and not TAKEN_HEADERS.fullmatch(found[1]) else ""


def free_slug(server: ToolServer) -> str:
    """The short name that begins the names of a new server's tools.

    One that everybody sees is beside each person's own.
    """
    wanted = re.sub(r"[^a-z0-9]+", "_", server.name.lower()).strip("_")[:SLUG_CHARACTERS]
    wanted = wanted or "tools"
    beside = Q() if server.owner is None else Q(owner=None) | Q(owner=server.owner)
    taken = set(ToolServer.objects.filter(beside).values_list("slug", flat=True))
    found, number = wanted, 1
    while found in taken:
        number += 1
        found = f"{wanted}{number}"
    return found
