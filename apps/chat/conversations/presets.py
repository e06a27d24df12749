"""Which model, system prompt and parameters a conversation has, and presets of the three."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from apps.chat.conversations.model_state import STATE_WORDS
from apps.chat.conversations.services import ChatError
from apps.chat.models import Conversation, Preset, SystemPrompt
from apps.servers import services as llm
from apps.servers.models import Server, State


class NoName(ChatError):
    code = "no_name"

    def __init__(self) -> None:
        super().__init__("Enter a preset name.")


class NotThere(ChatError):
    code = "model_not_there"

    def __init__(self) -> None:
        super().__init__("This model is no longer available. Choose another.")


@dataclass(frozen=True)
class Choice:
    """A model that can be picked. `key` is what the form sends."""

    server: Server
    model: str
    state: str
    context: int | None

    @property
    def key(self) -> str:
        return key_of(self.server.pk, self.model)

    @property
    def note(self) -> str:
        """What is to be known before it is picked: that it is not in memory, say."""
        return STATE_WORDS.get(self.state, "")


def key_of(server: int | None, model: str) -> str:
    return f"{server} {model}" if server is not None else ""


def choices(keep: int | None = None) -> list[tuple[Server, list[Choice]]]:
    """Every server with its models, as it was last seen; embedding models are left out.

    Args:
        keep: the server that is chosen, which stays among them whatever its state.
    """
    servers = list(Server.objects.prefetch_related("defaults"))
    look_for_first_time(servers)
    away = {State.UNREACHABLE, State.UNAUTHORIZED}
    found = [(server, _models(server)) for server in servers]
    # Without a model that writes: one that only embeds, or whose models nobody can ask for.
    return [
        (server, models)
        for server, models in found
        if models or server.pk == keep or not (server.model_ids or server.state in away)
    ]


def _models(server: Server) -> list[Choice]:
    return [
        Choice(server, model.id, model.state or "loaded", model.context)
        for model in server.model_facts
        if llm.can_generate(server, model)
    ]


def chosen(key: str) -> tuple[Server | None, str]:
    """The server and model of a form's key; None and "" for the default.

    Raises:
        NotThere: no such server.
    """
    if not key:
        return None, ""
    number, _, model = key.partition(" ")
    server = Server.objects.filter(pk=number).first() if number.isdecimal() else None
    if server is None:
        raise NotThere
    return server, model[:300]


def begun_with(preset: Preset, key: str) -> tuple[Server | None, str]:
    """The server and model of a new conversation: those picked in the form, else the preset's.

    Raises:
        NotThere: no such server.
    """
    server, model = chosen(key)
    return (server, model) if server is not None else (preset.server, preset.model)


def look_for_first_time(servers: Sequence[Server]) -> None:
    """Asks the servers nobody has looked at yet, all at once: their models are not known."""
    unseen = [server for server in servers if server.checked_at is None]
    if unseen:
        async_to_sync(_look_at)(unseen)


async def _look_at(servers: Sequence[Server]) -> None:
    await asyncio.gather(*map(llm.refresh_server, servers))


def save(
    *,
    owner: User,
    name: str,
    server: Server | None,
    model: str,
    system_prompt: SystemPrompt | None,
    params: dict[str, Any],
    response_format: dict[str, Any] | None = None,
) -> Preset:
    """A new preset, or the one of that name with these settings.

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
            "params": params,
            "response_format": response_format or {},
        },
    )
    return saved


def save_as(name: str, conversation: Conversation, owner: User) -> Preset:
    """What a conversation is set to, under a name.

    Raises:
        NoName
    """
    return save(
        owner=owner,
        name=name,
        server=conversation.server,
        model=conversation.model,
        system_prompt=conversation.system_prompt,
        params=conversation.params,
        response_format=conversation.response_format,
    )


def apply(preset: Preset, conversation: Conversation) -> None:
    """Copies a preset. A system prompt it does not name stays: it begins the cached prompt."""
    conversation.server, conversation.model = preset.server, preset.model
    conversation.params, conversation.response_format = preset.params, preset.response_format
    if preset.system_prompt is not None:
        conversation.system_prompt = preset.system_prompt
    conversation.save(
        update_fields=["server", "model", "params", "response_format", "system_prompt"]
    )
