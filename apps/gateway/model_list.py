"""The list of models, in the shape of OpenAI's, with what the workbench knows of each."""

import json
from collections import Counter
from typing import Any

from apps.core.label_models.label_model import LabelModel
from apps.core.models import ApiKey
from apps.gateway.errors import GatewayError
from apps.gateway.limits.answers import may_use, may_use_own
from apps.gateway.routes import MODELS
from apps.gateway.targets import qualified_name
from apps.servers.models import ModelFacts, Server


def model_list(servers: list[Server], own: list[LabelModel], key: ApiKey) -> bytes:
    """Return the JSON of the models that a key may use; arguments as in `model_entries`."""
    entries = model_entries(servers, own, key)
    return json.dumps({"object": "list", "data": list(entries.values())}).encode()


def model_entry(name: str, servers: list[Server], own: list[LabelModel], key: ApiKey) -> bytes:
    """Return the JSON of one of them, by its name or an alias.

    Raises:
        GatewayError: there is none.
    """
    entries = model_entries(servers, own, key)
    aliased = (one for one in entries.values() if name in one.get("aliases", ()))
    found = entries.get(name) or next(aliased, None)
    if found is None:
        detail = f"There is no model “{name[:100]}” that this key may use. {MODELS} lists them."
        raise GatewayError(404, "model_not_found", detail)
    return json.dumps(found).encode()


def model_entries(
    servers: list[Server], own: list[LabelModel], key: ApiKey
) -> dict[str, dict[str, Any]]:
    """Return what is known of the models that a key may use, by name.

    Each name is there once, and with its server's name where several have it.

    Args:
        own: the models of the workbench itself, which come before others of the same name.
    """
    entries = {model.id: _own_entry(model) for model in own if may_use_own(key, model)}
    addresses = {(model.id, server.address) for server in servers for model in server.model_facts}
    counts = Counter([*(model.id for model in own), *(name for name, _ in addresses)])
    for server in servers:
        for model in server.model_facts:
            if not may_use(key, server, model.id):
                continue
            entries.setdefault(model.id, _entry(model.id, server, model))
            if counts[model.id] > 1:
                name = qualified_name(server, model.id)
                entries[name] = _entry(name, server, model)
    return entries


def _own_entry(model: LabelModel) -> dict[str, Any]:
    return {
        "id": model.id,
        "object": "model",
        "created": int(model.created.timestamp()),
        "owned_by": "workbench",
        "state": "loaded",
        "aliases": list(model.aliases),
        "abilities": {"decisions": True},
    }


def _entry(name: str, server: Server, model: ModelFacts) -> dict[str, Any]:
    known = {
        "id": name,
        "object": "model",
        "created": int(server.created.timestamp()),
        "owned_by": server.name,
        "state": model.state,
        "aliases": model.aliases,
        "context": model.context,
        "slots": server.slots_of(model.id),
        "embeddings": model.embeddings,
        "vision": model.vision,
        "abilities": model.abilities,
    }
    return {key: value for key, value in known.items() if value not in (None, [], {})}
