"""The tools of a chat as the settings panel shows them: by group, with their approvals."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from apps.chat.models.stored_json import ToolSettings
from apps.chat.tools.settings import approval_of
from apps.core import tools
from apps.core.tools import IN_GROUP, Tool


@dataclass(frozen=True)
class ToolChoice:
    """A tool in the settings panel."""

    tool: Tool
    approval: str


@dataclass(frozen=True)
class ToolGroup:
    """The tools of one tool server, or Workbench's own."""

    name: str
    """Empty for Workbench's own."""
    choices: Sequence[ToolChoice]

    @property
    def prefix(self) -> str:
        """The prefix of the names of its tools."""
        return self.choices[0].tool.name.partition(IN_GROUP)[0]

    @property
    def approval(self) -> str:
        """The approval of all of its tools; "" if they differ."""
        approvals = {choice.approval for choice in self.choices}
        return approvals.pop() if len(approvals) == 1 else ""

    @property
    def trouble(self) -> str:
        """The reason why its calls would fail now."""
        return self.choices[0].tool.trouble


def choices(settings: ToolSettings, person: int) -> list[ToolChoice]:
    """Return all tools by group, Workbench's own first, and by name."""
    found = [ToolChoice(tool, approval_of(settings, tool)) for tool in tools.available(person)]
    return sorted(found, key=lambda choice: choice.tool.group)


def groups(settings: ToolSettings, person: int) -> list[ToolGroup]:
    """Return the tools of a person's chat in their groups."""
    found = groupby(choices(settings, person), key=lambda choice: choice.tool.group)
    return [ToolGroup(name, list(members)) for name, members in found]


def approve_group(prefix: str, approval: str, person: int) -> dict[str, str]:
    """Return the same approval for each tool of a group."""
    names = [tool.name for tool in tools.available(person) if tool.group]
    return {name: approval for name in names if name.startswith(f"{prefix}{IN_GROUP}")}
