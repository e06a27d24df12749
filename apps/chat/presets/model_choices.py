"""The models that a chat can be answered by, and the keys that name them in forms."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync

from apps.chat.conversations.model_state import MODEL_LABELS
from apps.chat.errors import ChatError
from apps.servers import services as llm
from apps.servers.models import Server, State


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


def list_models(keep: int | None = None) -> list[tuple[Server, list[ModelChoice]]]:
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


def parse_key(key: str) -> tuple[Server | None, str]:
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


def form_choices(server: Server | None, model: str) -> list[tuple[str, Any]]:
    """Return the choices of a form's field: each server's models, and this one in any case."""
    found: list[tuple[str, Any]] = [("", "Default")]
    for known, models in list_models(keep=server.pk if server else None):
        if models:
            found.append((str(known), [(choice.key, _label(choice)) for choice in models]))
    key = key_of(server.pk if server else None, model)
    if key and key not in {known for _, group in found[1:] for known, _ in group}:
        found.append((key, f"{server}: {model or 'first available model'}"))
    return found


def _label(choice: ModelChoice) -> str:
    context = f"{choice.context:,} tokens" if choice.context else ""
    return " · ".join(part for part in (choice.model, choice.note, context) if part)
