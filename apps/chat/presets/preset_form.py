"""The form of a preset: its fields, and the preset that they describe."""

import json
from collections.abc import Iterable
from typing import Any

from django import forms
from django.db import transaction

from apps.chat.models import Preset, SystemPrompt, ToolSettings
from apps.chat.presets import model_choices, presets, system_prompts, tool_fields
from apps.chat.prompt import params_form, response_format
from apps.core.schemas.json_schemas import BadSchema
from apps.llm.thinking import thinking_choices

MAX_PROMPT = 100_000  # characters
NEW = "new"  # in place of the key of a system prompt

Choices = list[tuple[str, Any]]


class PresetForm(forms.Form):
    """What a preset sets. An empty parameter is left to the server."""

    name = forms.CharField(
        max_length=100,
        error_messages={"required": "Enter a preset name."},
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "e.g. Short and cold"}),
    )
    model = forms.ChoiceField(
        required=False,
        error_messages={"invalid_choice": str(model_choices.ModelNotAvailable())},
    )
    system_prompt = forms.ChoiceField(
        required=False,
        label="System prompt",
        error_messages={"invalid_choice": "This system prompt was deleted. Choose another."},
    )
    text_of = forms.CharField(required=False)
    text = forms.CharField(required=False, max_length=MAX_PROMPT)
    thinking = forms.ChoiceField(required=False, help_text="Not part of max tokens")
    stop = forms.CharField(
        required=False,
        label="Stop sequences",
        strip=False,
        help_text="One per line. Generation stops before the sequence.",
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono"}),
    )

    tools = forms.ChoiceField(required=False, choices=tool_fields.SOURCES)
    schema = forms.CharField(required=False)

    def __init__(self, preset: Preset, data: Any = None) -> None:
        self.preset = preset
        self.prompts = _prompts(preset)
        chosen = str(preset.system_prompt_id or "")
        values = params_form.form_values(preset.sampling)
        super().__init__(
            data,
            initial={
                **values,
                "name": preset.name,
                "model": model_choices.key_of(preset.server_id, preset.model),
                "system_prompt": chosen,
                "text_of": chosen,
                "text": preset.system_prompt.text if preset.system_prompt else "",
                "tools": "" if preset.tools is None else tool_fields.OWN,
                "schema": json.dumps(response_format.schema_of(preset.response_format)),
            },
        )
        for number in params_form.NUMBERS:
            self.fields[number.name] = _number_field(number)
        self.tools_before = preset.tool_settings or ToolSettings()
        self.fields |= dict(tool_fields.tool_fields(self.tools_before, preset.owner_id))
        self._offer("model", model_choices.form_choices(preset.server, preset.model))
        self._offer("system_prompt", _prompt_choices(self.prompts.values()))
        self._offer("thinking", thinking_choices(values["thinking"]))

    def _offer(self, name: str, choices: Choices) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    @property
    def sampling(self) -> list[forms.BoundField]:
        return [self[number.name] for number in params_form.SAMPLING]

    @property
    def repetition(self) -> list[forms.BoundField]:
        return [self[number.name] for number in params_form.REPETITION]

    @property
    def has_repetition(self) -> bool:
        """True if a field of the folded part is set or wrong."""
        fields = [*self.repetition, self["stop"]]
        return any(field.value() or field.errors for field in fields)

    @property
    def tool_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name.startswith(tool_fields.PREFIX)]

    @property
    def chosen_prompt(self) -> SystemPrompt | None:
        """The stored system prompt that is chosen in the form."""
        return self.prompts.get(str(self["system_prompt"].value() or ""))

    def clean(self) -> None:
        data = self.cleaned_data
        try:
            typed = {name: str(value) for name, value in data.items() if value is not None}
            data["params"] = params_form.parse_form(typed)
        except params_form.BadParams as bad:
            for name, sentence in bad.errors.items():
                self.add_error(name, sentence)
        try:
            data["response_format"] = self._response_format(data.get("schema", ""))
        except BadSchema as bad:
            self.add_error("schema", str(bad))
        if data.get("system_prompt") == NEW and not data.get("text", "").strip():
            self.add_error("text", "Enter the text of the system prompt, or choose “None”.")

    @transaction.atomic
    def save(self) -> None:
        """Write the fields to the preset and store it.

        Raises:
            ChatError: the name is taken, or the model is gone. Nothing is saved.
        """
        data, preset = self.cleaned_data, self.preset
        preset.name = data["name"]
        preset.server, preset.model = model_choices.parse_key(data["model"])
        preset.response_format, preset.tools = data["response_format"], self._tools()
        preset.params = params_form.merge(preset.sampling, data["params"]).to_json()
        preset.system_prompt = self._save_prompt()
        presets.store(preset)

    def _tools(self) -> dict[str, Any] | None:
        if self.cleaned_data["tools"] != tool_fields.OWN:
            return None
        before, person = self.tools_before, self.preset.owner_id
        return tool_fields.chosen_tools(self.cleaned_data, before, person).to_json()

    def _response_format(self, typed: str) -> dict[str, Any]:
        """Return the format for a schema; the stored one, strict or not, if it is unchanged."""
        stored = dict(self.preset.response_format)
        found = response_format.parse_form(typed)
        is_same = response_format.schema_of(found) == response_format.schema_of(stored)
        return stored if is_same else found

    def _save_prompt(self) -> SystemPrompt | None:
        """Return the chosen system prompt; a new version of it if its text was edited."""
        key, chosen = self.cleaned_data["system_prompt"], self.chosen_prompt
        text = self.cleaned_data["text"].strip()
        is_shown = self.cleaned_data["text_of"] == key  # another prompt's text changes nothing
        if key == NEW:
            return self._version(self.preset.name, text)
        if chosen is None or not is_shown or text in {"", chosen.text}:
            return chosen
        return self._version(chosen.name, text)

    def _version(self, name: str, text: str) -> SystemPrompt:
        owner = self.preset.owner
        return system_prompts.save_system_prompt(owner=owner, name=name, text=text)


def _number_field(number: params_form.ParamField) -> forms.CharField:
    limits = {"min": number.lowest, "max": number.highest}
    attrs = {name: value for name, value in limits.items() if value}
    attrs |= {"step": number.step, "placeholder": "Server default"}
    widget = forms.NumberInput(attrs=attrs)
    return forms.CharField(required=False, label=number.label, help_text=number.hint, widget=widget)


def _prompts(preset: Preset) -> dict[str, SystemPrompt]:
    """Return the newest system prompts by key, and the version that the preset has."""
    found = system_prompts.list_system_prompts(preset.owner)
    if preset.system_prompt and preset.system_prompt not in found:
        found.append(preset.system_prompt)
    return {str(prompt.pk): prompt for prompt in found}


def _prompt_choices(prompts: Iterable[SystemPrompt]) -> Choices:
    known = [(str(prompt.pk), str(prompt)) for prompt in prompts]
    return [("", "None"), *known, (NEW, "New system prompt")]
