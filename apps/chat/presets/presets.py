"""Models to choose from, and presets of model, system prompt and parameters."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from apps.chat.conversations.model_state import MODEL_LABELS
from apps.chat.errors import ChatError
from apps.chat.models import Conversation, Preset, SamplingParams, SystemPrompt
from apps.servers import services as llm
from apps.servers.models import Server, State


class NoName(ChatError):
    code = "no_name"

    def __init__(self) -> None:
        super().__init__("Enter a preset name.")


class ModelNotAvailable(ChatError):
    code = "model_not_there"

    def __init__(self) -> None:
        super().__init__("This model is no longer available. Choose another.")


@dataclass(frozen=True)
class ModelChoice:
    """A model to choose. `key` is the value that the form sends."""

    server: Server
    model: str
    state: str
    context: int | None

    @property
    def key(self) -> str:
        return key_of(self.server.pk, self.model)

    @property
    def note(self) -> str:
        """Label of its state, such as "not loaded"."""
        return MODEL_LABELS.get(self.state, "")


def key_of(server: int | None, model: str) -> str:
    return f"{server} {model}" if server is not None else ""


def model_choices(keep: int | None = None) -> list[tuple[Server, list[ModelChoice]]]:
    """Return every server with its models at the last check, without embedding models.

    Args:
        keep: the current server, which is included whatever its state.
    """
    servers = list(Server.objects.prefetch_related("defaults"))
    _check_new_servers(servers)
    away = {State.UNREACHABLE, State.UNAUTHORIZED}
    found = [(server, _models(server)) for server in servers]
    # Servers without a chat model are left out if they are known to have none, or are offline.
    return [
        (server, models)
        for server, models in found
        if models or server.pk == keep or not (server.model_ids or server.state in away)
    ]


def _models(server: Server) -> list[ModelChoice]:
    return [
        ModelChoice(server, model.id, model.state or "loaded", model.context)
        for model in server.model_facts
        if llm.can_generate(server, model)
    ]


def parse_model_key(key: str) -> tuple[Server | None, str]:
    """Return the server and model of a form's key; None and "" for the default.

    Raises:
        ModelNotAvailable: no such server.
    """
    if not key:
        return None, ""
    number, _, model = key.partition(" ")
    server = Server.objects.filter(pk=number).first() if number.isdecimal() else None
    if server is None:
        raise ModelNotAvailable
    return server, model[:300]


def _check_new_servers(servers: Sequence[Server]) -> None:
    """Check servers that were never checked, all at once: their models are not known."""
    unseen = [server for server in servers if server.checked_at is None]
    if unseen:
        async_to_sync(_check)(unseen)


async def _check(servers: Sequence[Server]) -> None:
    await asyncio.gather(*map(llm.refresh_server, servers))


def save(
    *,
    owner: User,
    name: str,
    server: Server | None,
    model: str,
    system_prompt: SystemPrompt | None,
    params: SamplingParams,
    response_format: Mapping[str, Any] | None = None,
) -> Preset:
    """Create a preset, or update the one with this name.

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
        },
    )
    return saved


def save_as(name: str, conversation: Conversation, owner: User) -> Preset:
    """Save the settings of a conversation as a preset.

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
    )


def apply(preset: Preset, conversation: Conversation) -> None:
    """Copy a preset's settings. Without a system prompt it keeps the current one, and its cache."""
    conversation.preset = preset if preset.pk else None
    conversation.server, conversation.model = preset.server, preset.model
    conversation.params, conversation.response_format = preset.params, preset.response_format
    if preset.system_prompt is not None:
        conversation.system_prompt = preset.system_prompt
    conversation.save(
        update_fields=["preset", "server", "model", "params", "response_format", "system_prompt"]
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
    return given != current or has_other_prompt
