"""What the chips of the composer show: the settings of a chat, each in a word or two."""

from collections.abc import Sequence
from dataclasses import dataclass

from apps.chat.models import Conversation
from apps.chat.presets import presets
from apps.chat.prompt import params_form, response_format
from apps.chat.tools import settings as tool_settings
from apps.llm.thinking import label_of, parse_thinking


@dataclass(frozen=True)
class Chip:
    """One chip. `value` is empty while nothing is set."""

    name: str
    icon: str
    label: str
    value: str = ""


def chips_of(chat: Conversation) -> list[Chip]:
    """Return the chips after the model's, in their order."""
    return [_tools(chat), _thinking(chat), _preset(chat), _json(chat)]


def _tools(chat: Conversation) -> Chip:
    count = len(tool_settings.offer(chat.tool_settings, chat.owner_id).tools)
    value = f"{count} tool{'' if count == 1 else 's'}" if count else ""
    return Chip("tools", "wrench", "Tools", value)


def _thinking(chat: Conversation) -> Chip:
    setting = params_form.form_values(chat.sampling)["thinking"]
    values = {"default": "", "on": "Thinking", "off": "No thinking"}
    value = values.get(setting)
    if value is None:
        value = f"Thinking {label_of(parse_thinking(setting)).lower()}"
    return Chip("thinking", "thinking", "Thinking", value)


def _preset(chat: Conversation) -> Chip:
    if chat.preset is None:
        return Chip("preset", "bookmark", "Preset")
    note = ", changed" if presets.is_changed(chat.preset, chat) else ""
    return Chip("preset", "bookmark", "Preset", f"{chat.preset}{note}")


def _json(chat: Conversation) -> Chip:
    if not chat.response_format:
        return Chip("json", "braces", "JSON")
    count = len(response_format.schema_of(chat.response_format).get("properties", {}))
    fields = f"JSON, {count} field{'' if count == 1 else 's'}" if count else "JSON"
    return Chip("json", "braces", "JSON", fields)


def other_model_names(chat: Conversation) -> Sequence[str]:
    """Return the models that answer next to the first."""
    return [key.partition(" ")[2] or "First available model" for key in chat.other_models]
