"""The fields of tools in the form of a preset, one for each tool of its owner."""

from collections.abc import Iterator, Mapping
from typing import Any

from django import forms

from apps.chat.models import ToolSettings
from apps.chat.tools import settings as tool_settings
from apps.chat.tools.choices import ToolChoice, choices
from apps.core.tools import Approval

OWN = "own"
SOURCES = [("", "Keep the tools of the chat"), (OWN, "Set by this preset")]
APPROVALS = [
    (str(Approval.NEVER), "Off"),
    (str(Approval.ASK), "Ask first"),
    (str(Approval.ALWAYS), "Always allow"),
]
PREFIX = "use-"  # + tool name


class ToolField(forms.ChoiceField):
    """When a tool may run."""

    def __init__(self, choice: ToolChoice) -> None:
        self.group = choice.tool.group
        super().__init__(
            choices=APPROVALS,
            required=False,
            label=choice.tool.title,
            initial=choice.approval,
        )


def tool_fields(settings: ToolSettings, person: int) -> Iterator[tuple[str, ToolField]]:
    for choice in choices(settings, person):
        yield f"{PREFIX}{choice.tool.name}", ToolField(choice)


def chosen_tools(data: Mapping[str, Any], before: ToolSettings, person: int) -> ToolSettings:
    """Return the tools that a form has chosen; limits as they were.

    Raises:
        BadTools: a tool is no longer there.
    """
    use = {
        name.removeprefix(PREFIX): value
        for name, value in data.items()
        if name.startswith(PREFIX) and value
    }
    return tool_settings.check(use, before.rounds, before.parallel, person)
