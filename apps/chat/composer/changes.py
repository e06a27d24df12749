"""Changes that the menus of the composer make to the settings of a chat."""

from collections.abc import Callable, Mapping, Sequence

from apps.chat.composer import several
from apps.chat.errors import ChatError
from apps.chat.models import Conversation, Preset
from apps.chat.presets import model_choices, presets
from apps.chat.prompt import params_form, response_format
from apps.chat.tools import settings as tool_settings
from apps.core.schemas.json_schemas import BadSchema


class BadChange(ChatError):
    """A value that a menu cannot have sent."""

    code = "bad_change"


def choose_model(chat: Conversation, values: Sequence[str]) -> None:
    """Set the model that answers; the first value is its key, "" for the default model."""
    chat.server, chat.model = model_choices.parse_key(next(iter(values), ""))
    chat.other_models = []
    chat.save(update_fields=["server", "model", "other_models"])


def toggle_model(chat: Conversation, values: Sequence[str]) -> None:
    """Add a model that answers next to the first, or remove it."""
    several.toggle(chat, next(iter(values), ""))
    chat.save(update_fields=["other_models"])


def choose_tools(chat: Conversation, values: Sequence[str]) -> None:
    """Offer just these tools, each with its usual approval."""
    mine = chat.tool_settings
    use: Mapping[str, str | None] = dict.fromkeys(values)
    chat.tools = tool_settings.restrict(mine, use, chat.owner_id).to_json()
    chat.save(update_fields=["tools"])


def choose_thinking(chat: Conversation, values: Sequence[str]) -> None:
    form = params_form.form_values(chat.sampling) | {"thinking": next(iter(values), "")}
    try:
        edited = params_form.parse_form(form)
    except params_form.BadParams as error:
        raise BadChange(str(error)) from error
    chat.params = params_form.merge(chat.sampling, edited).to_json()
    chat.save(update_fields=["params"])


def choose_preset(chat: Conversation, values: Sequence[str]) -> None:
    """Apply a preset; "" goes back to the defaults of the model."""
    key = next(iter(values), "")
    if key:
        mine = Preset.objects.filter(owner_id=chat.owner_id)
        found = mine.filter(pk=key).first() if key.isdecimal() and len(key) < 19 else None
        if found is None:
            raise BadChange("This preset was deleted. Choose another.")
        presets.apply(found, chat)
    else:
        presets.apply(Preset(server=chat.server, model=chat.model), chat)


def save_preset(chat: Conversation, values: Sequence[str]) -> None:
    chat.preset = presets.save_as(next(iter(values), ""), chat, chat.owner)
    chat.save(update_fields=["preset"])


def choose_json(chat: Conversation, values: Sequence[str]) -> None:
    """Set the schema that answers follow; without a field, they are free text."""
    try:
        chat.response_format = response_format.parse_form(next(iter(values), ""))
    except BadSchema as error:
        raise BadChange(str(error)) from error
    chat.save(update_fields=["response_format"])


CHANGES: Mapping[str, Callable[[Conversation, Sequence[str]], None]] = {
    "model": choose_model,
    "other-model": toggle_model,
    "tools": choose_tools,
    "thinking": choose_thinking,
    "preset": choose_preset,
    "save-preset": save_preset,
    "json": choose_json,
}
