"""Presets: a model, a system prompt and parameters under one name."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from apps.chat.errors import ChatError
from apps.chat.models import Conversation, Preset, SamplingParams, SystemPrompt, ToolSettings
from apps.chat.prompt import response_format
from apps.servers.models import Server


class NoName(ChatError):
    code = "no_name"

    def __init__(self) -> None:
        super().__init__("Enter a preset name.")


class NameTaken(ChatError):
    code = "name_taken"

    def __init__(self, name: str) -> None:
        super().__init__(f"You already have a preset “{name}”. Choose another name.")


def save(
    *,
    owner: User,
    name: str,
    server: Server | None,
    model: str,
    system_prompt: SystemPrompt | None,
    params: SamplingParams,
    response_format: Mapping[str, Any] | None = None,
    tools: ToolSettings | None = None,
) -> Preset:
    """Create a preset, or update the one with this name.

    Args:
        tools: None: a conversation that the preset is applied to keeps its own.

    Raises:
        NoName
    """
    if not (name := name.strip()[:100]):
        raise NoName
    saved, _ = Preset.objects.update_or_create(
        owner=owner,
        name=name,
        defaults={
            "server": server,
            "model": model,
            "system_prompt": system_prompt,
            "params": params.to_json(),
            "response_format": response_format or {},
            "tools": None if tools is None else tools.to_json(),
        },
    )
    return saved


def store(preset: Preset) -> None:
    """Save a new or a changed preset.

    Raises:
        NameTaken: another preset of its owner has the name.
    """
    try:
        with transaction.atomic():
            preset.save()
    except IntegrityError:
        raise NameTaken(preset.name) from None


def save_as(name: str, conversation: Conversation, owner: User) -> Preset:
    """Save the settings of a conversation as a preset; its tools if it has any.

    Raises:
        NoName
    """
    return save(
        owner=owner,
        name=name,
        server=conversation.server,
        model=conversation.model,
        system_prompt=conversation.system_prompt,
        params=conversation.sampling,
        response_format=conversation.response_format,
        tools=conversation.tool_settings if conversation.tools else None,
    )


def describe(preset: Preset) -> str:
    """Return what a preset sets, such as "Default model · Teacher · 2 parameters"."""
    tools = preset.tool_settings
    fields = len(response_format.schema_of(preset.response_format).get("properties", {}))
    parts = [
        preset.model or "Default model",
        str(preset.system_prompt or ""),
        _count(len(preset.params), "parameter"),
        _count(len(tools.use), "tool", "No tools") if tools else "",
        f"JSON, {_count(fields, 'field')}" if fields else "",
    ]
    return " · ".join(part for part in parts if part)


def _count(number: int, noun: str, none: str = "") -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}" if number else none


def apply(preset: Preset, conversation: Conversation) -> None:
    """Copy a preset's settings. Without a system prompt it keeps the current one, and its cache."""
    conversation.preset = preset if preset.pk else None
    conversation.server, conversation.model = preset.server, preset.model
    conversation.params, conversation.response_format = preset.params, preset.response_format
    if preset.system_prompt is not None:
        conversation.system_prompt = preset.system_prompt
    if preset.tools is not None:
        conversation.tools = preset.tools
    conversation.save(
        update_fields=[
            *("preset", "server", "model", "params"),
            *("response_format", "system_prompt", "tools"),
        ]
    )


def is_changed(preset: Preset, conversation: Conversation) -> bool:
    """Return True if a conversation no longer has the settings of its preset."""
    given = (preset.server_id, preset.model, preset.params, preset.response_format)
    current = (
        conversation.server_id,
        conversation.model,
        conversation.params,
        conversation.response_format,
    )
    has_other_prompt = (
        preset.system_prompt_id is not None
        and preset.system_prompt_id != conversation.system_prompt_id
    )
    has_other_tools = preset.tools is not None and preset.tools != conversation.tools
    return given != current or has_other_prompt or has_other_tools
