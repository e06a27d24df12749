"""Which tools a conversation offers its model, and when each may run."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.core import tools
from apps.core.errors import DomainError
from apps.core.tools import IN_GROUP, Approval, Tool

ROUNDS = 8
MAX_ROUNDS = 50


class BadTools(DomainError):
    """The settings make no sense. The message says what to change."""

    code = "bad_tools"


@dataclass(frozen=True)
class Offer:
    """What one answer may call."""

    tools: tuple[Tool, ...] = ()
    """By name."""
    asks: frozenset[str] = frozenset()
    """The names of those that a person has to let through each time."""
    rounds: int = ROUNDS
    """How often the model may call something before it has to answer."""
    parallel: bool = True
    """Whether it may call several at once."""

    def find(self, name: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    def definitions(self) -> list[dict[str, Any]]:
        """As they are sent. They are a part of the prefix: the same tools are the same bytes."""
        return [definition_of(tool) for tool in self.tools]

    @property
    def size(self) -> int:
        """Bytes of the definitions."""
        return len(json.dumps(self.definitions()).encode()) if self.tools else 0


def definition_of(tool: Tool) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": _in_order(tool.parameters),
    }
    return {"type": "function", "function": function}


def _in_order(value: Any) -> Any:
    """The same value with the keys of every object sorted, but for names of properties.

    Models fill arguments in the order of the properties, so that order is the author's.
    """
    if isinstance(value, dict):
        return {
            key: {name: _in_order(part) for name, part in value[key].items()}
            if key == "properties" and isinstance(value[key], dict)
            else _in_order(value[key])
            for key in sorted(value)
        }
    if isinstance(value, list):
        return [_in_order(part) for part in value]
    return value


def approval_of(settings: Mapping[str, Any], tool: Tool) -> str:
    """When a tool may run here. A definition was allowed, not a name: another one asks again."""
    chosen = str((settings.get("use") or {}).get(tool.name, Approval.NEVER))
    allowed = (settings.get("allowed") or {}).get(tool.name, "")
    if chosen == Approval.ALWAYS and allowed != tool.fingerprint:
        return Approval.ASK
    return chosen


def allowing(settings: Mapping[str, Any], tool: Tool) -> dict[str, Any]:
    """The settings with this tool, as it is defined now, run unasked."""
    use = {**(settings.get("use") or {}), tool.name: str(Approval.ALWAYS)}
    changed = {**settings, "use": use}
    if tool.fingerprint:
        changed["allowed"] = {**(settings.get("allowed") or {}), tool.name: tool.fingerprint}
    return changed


def offer(settings: Mapping[str, Any], person: int) -> Offer:
    """What a person's conversation with these settings offers. A tool that is gone is left out."""
    known = tools.available(person) if settings.get("use") else []
    approvals = {tool.name: approval_of(settings, tool) for tool in known}
    chosen = [tool for tool in known if approvals[tool.name] != Approval.NEVER]
    return Offer(
        tools=tuple(chosen),
        asks=frozenset(tool.name for tool in chosen if approvals[tool.name] == Approval.ASK),
        rounds=settings.get("rounds") or ROUNDS,
        parallel=settings.get("parallel", True),
    )


def only(settings: Mapping[str, Any], use: Mapping[str, str | None], person: int) -> dict[str, Any]:
    """The settings of one answer that offers just these tools; None: approved as usual.

    A tool that a person chose to be asked about is never run without asking.

    Raises:
        BadTools
    """
    known = {tool.name: tool for tool in tools.available(person)}
    chosen: dict[str, str] = {}
    for name, approval in use.items():
        if name not in known:
            raise BadTools(_unknown(name, list(known)))
        usual = approval_of(settings, known[name])
        chosen[name] = approval or (known[name].default if usual == Approval.NEVER else usual)
    return checked({**settings, "use": chosen}, person)


def checked(given: Mapping[str, Any], person: int) -> dict[str, Any]:
    """Settings as they are stored: only what differs from the default.

    Raises:
        BadTools
    """
    known = {tool.name: tool for tool in tools.available(person)}
    kept: dict[str, str] = {}
    allowed: dict[str, str] = {}
    for name, approval in (given.get("use") or {}).items():
        if name not in known:
            raise BadTools(_unknown(name, list(known)))
        if approval not in set(Approval):
            raise BadTools(f"“{name}”: approval must be always, ask or never, not “{approval}”.")
        if approval != Approval.NEVER:
            kept[name] = str(approval)
        if approval == Approval.ALWAYS and (fingerprint := known[name].fingerprint):
            allowed[name] = fingerprint
    stored: dict[str, Any] = {"use": dict(sorted(kept.items()))} if kept else {}
    if allowed:
        stored["allowed"] = dict(sorted(allowed.items()))
    rounds = ROUNDS if given.get("rounds") is None else given["rounds"]
    if not (isinstance(rounds, int) and 1 <= rounds <= MAX_ROUNDS):
        raise BadTools(f"Max tool rounds must be a number from 1 to {MAX_ROUNDS}.")
    if rounds != ROUNDS:
        stored["rounds"] = rounds
    if not given.get("parallel", True):
        stored["parallel"] = False
    return stored


def _unknown(name: str, known: list[str]) -> str:
    return f"Unknown tool “{name}”. Available tools: {', '.join(known)}."


@dataclass(frozen=True)
class Choice:
    """A tool in the panel beside a conversation."""

    tool: Tool
    approval: str

    @property
    def prefix(self) -> str:
        """What the names of its group begin with."""
        return self.tool.name.partition(IN_GROUP)[0]


def for_all(prefix: str, approval: str, person: int) -> dict[str, str]:
    """The same for each tool of a group."""
    names = [tool.name for tool in tools.available(person) if tool.group]
    return {name: approval for name in names if name.startswith(f"{prefix}{IN_GROUP}")}


def choices(settings: Mapping[str, Any], person: int) -> list[Choice]:
    """By group, the workbench's own first, and by name."""
    found = [Choice(tool, approval_of(settings, tool)) for tool in tools.available(person)]
    return sorted(found, key=lambda choice: choice.tool.group)
