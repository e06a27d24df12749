"""The tools that a conversation offers its model, and their approvals."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from apps.chat.errors import ChatError
from apps.chat.models.stored_json import MAX_ROUNDS, ROUNDS, ToolSettings
from apps.core import tools
from apps.core.tools import Approval, Tool


class BadTools(ChatError):
    """Invalid settings of tools."""

    code = "bad_tools"


@dataclass(frozen=True)
class Offer:
    """The tools that one answer may call."""

    tools: tuple[Tool, ...] = ()
    """By name."""
    asks: frozenset[str] = frozenset()
    """Names of tools that need approval each time."""
    rounds: int = ROUNDS
    """Rounds of calls before the model has to answer."""
    parallel: bool = True
    """True if one round may have several calls."""

    def find(self, name: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    def definitions(self) -> list[dict[str, Any]]:
        """Return definitions as they are sent: the same tools are the same bytes."""
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
    """Return the value with the keys of every object sorted, except for names of properties.

    Models fill arguments in the order of the properties, so that order stays the author's.
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


def approval_of(settings: ToolSettings, tool: Tool) -> str:
    """Return when a tool may run. A changed definition that was always allowed asks again."""
    chosen = str(settings.use.get(tool.name, Approval.NEVER))
    if chosen == Approval.ALWAYS and settings.allowed.get(tool.name, "") != tool.fingerprint:
        return Approval.ASK
    return chosen


def always_allow(settings: ToolSettings, tool: Tool) -> ToolSettings:
    """Return the settings with this tool, as it is defined now, always allowed."""
    allowed = settings.allowed
    if tool.fingerprint:
        allowed = {**allowed, tool.name: tool.fingerprint}
    use = {**settings.use, tool.name: str(Approval.ALWAYS)}
    return replace(settings, use=use, allowed=allowed)


def offer(settings: ToolSettings, person: int) -> Offer:
    """Return the tools that a person's conversation offers. Tools that are gone are left out."""
    known = tools.available(person) if settings.use else []
    approvals = {tool.name: approval_of(settings, tool) for tool in known}
    chosen = [tool for tool in known if approvals[tool.name] != Approval.NEVER]
    return Offer(
        tools=tuple(chosen),
        asks=frozenset(tool.name for tool in chosen if approvals[tool.name] == Approval.ASK),
        rounds=settings.rounds,
        parallel=settings.parallel,
    )


def restrict(settings: ToolSettings, use: Mapping[str, str | None], person: int) -> ToolSettings:
    """Return the settings of one answer that offers just these tools; None: approved as usual.

    A tool that a person chose to be asked about is never run without asking.

    Raises:
        BadTools: an unknown tool or approval.
    """
    known = {tool.name: tool for tool in tools.available(person)}
    chosen: dict[str, str] = {}
    for name, approval in use.items():
        if name not in known:
            raise BadTools(_unknown(name, list(known)))
        usual = approval_of(settings, known[name])
        chosen[name] = approval or (known[name].default if usual == Approval.NEVER else usual)
    return check(chosen, settings.rounds, settings.parallel, person)


def check(use: Mapping[str, str], rounds: int, parallel: bool, person: int) -> ToolSettings:
    """Return settings that can be stored.

    Args:
        use: approvals (always, ask, never) by tool name.

    Raises:
        BadTools: an unknown tool or approval, or too many rounds.
    """
    known = {tool.name: tool for tool in tools.available(person)}
    kept: dict[str, str] = {}
    allowed: dict[str, str] = {}
    for name, approval in use.items():
        if name not in known:
            raise BadTools(_unknown(name, list(known)))
        if approval not in set(Approval):
            raise BadTools(f"“{name}”: approval must be always, ask or never, not “{approval}”.")
        if approval != Approval.NEVER:
            kept[name] = str(approval)
        if approval == Approval.ALWAYS and (fingerprint := known[name].fingerprint):
            allowed[name] = fingerprint
    if not 1 <= rounds <= MAX_ROUNDS:
        raise BadTools(f"Max tool rounds must be a number from 1 to {MAX_ROUNDS}.")
    return ToolSettings(kept, allowed, rounds, parallel)


def _unknown(name: str, known: list[str]) -> str:
    return f"Unknown tool “{name}”. Available tools: {', '.join(known)}."
