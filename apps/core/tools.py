"""Registry of tools that a model may call. Features register tools; the chat offers them.

    register(
        Tool(
            name="classify_text",
            title="Classify a text",
            description="What the model reads.",
            parameters={"type": "object", ...},
            run="apps.classifiers.chat_tools.classify_text",
        )
    )

`run` is `async def run(user, arguments) -> str` or its dotted path. It is called with the user of
the conversation and with arguments that fit the schema, so it may declare them as a TypedDict, and
reads nothing but the user's own data.
It raises ToolError where it cannot do what was asked; the model then reads that sentence.

Tools that come and go while the workbench runs are offered by a source, see `register_source`.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import cast

from django.contrib.auth.models import User
from django.utils.module_loading import import_string

from apps.core.schemas.json_types import JsonObject

Run = Callable[[User, JsonObject], Awaitable[str]]


class Approval(StrEnum):
    """Approval a tool needs before it runs."""

    ALWAYS = "always"
    ASK = "ask"
    """Only after a person has looked at the call."""
    NEVER = "never"
    """The model is not told of it."""


class ToolError(Exception):
    """It could not be done. The message is for the model: what is wrong and what to try instead."""


def _always_there() -> bool:
    return True


@dataclass(frozen=True)
class Tool:
    name: str
    """Letters, digits and underscores: what the model calls it."""
    title: str
    """Its name for people."""
    description: str
    parameters: JsonObject
    """A JSON schema of an object."""
    run: str | Run
    needs_approval: bool = False
    """True if a person is asked first, unless they choose otherwise."""
    seconds: float = 30.0
    """A call that takes longer has failed."""
    is_there: Callable[[], bool] = field(default=_always_there)
    """True if the installation allows it at all."""
    group: str = ""
    """The name of a group of tools, for people; empty for the workbench's own."""
    trouble: str = ""
    """The reason why a call would fail now, as a sentence for people."""
    source: str = ""
    """The address of a tool that comes from outside: another address is another tool."""

    @property
    def default(self) -> Approval:
        return Approval.ASK if self.needs_approval else Approval.ALWAYS

    @property
    def fingerprint(self) -> str:
        """Hash of all that an approval covers; "" for our own tools."""
        if not self.source:
            return ""
        approved = [self.source, self.name, self.description, self.parameters]
        return hashlib.sha256(json.dumps(approved, sort_keys=True).encode()).hexdigest()[:16]

    def function(self) -> Run:
        return cast(Run, import_string(self.run)) if isinstance(self.run, str) else self.run


registered: dict[str, Tool] = {}
_sources: list[Callable[[int], list[Tool]]] = []
IN_GROUP = "__"
"""Between the short name of a group and the name a tool has in it."""


def register(tool: Tool) -> None:
    """Offer a tool. To be called in `AppConfig.ready`; a second one of that name replaces it."""
    registered[tool.name] = tool


def register_source(source: Callable[[int], list[Tool]]) -> None:
    """Offer what a function finds for a person whenever tools are listed.

    It takes the user's primary key, and may use the database. The names of its tools begin with
    the short name of their group and IN_GROUP.
    """
    _sources.append(source)


def available(person: int) -> list[Tool]:
    """All tools that a person may use, by name. Synchronous: sources use the database.

    Args:
        person: the user's primary key.
    """
    found = {tool.name: tool for source in _sources for tool in source(person)} | registered
    return [tool for _, tool in sorted(found.items()) if tool.is_there()]


def title_of(name: str) -> str:
    """Return the title of a tool, or its name where it is unknown."""
    if tool := registered.get(name):
        return tool.title
    group, _, title = name.partition(IN_GROUP)
    return f"{title} · {group}" if title else name


def parameters(required: list[str] | None = None, **properties: JsonObject) -> JsonObject:
    """The schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": {**properties},
        "required": [*(sorted(properties) if required is None else required)],
        "additionalProperties": False,
    }
