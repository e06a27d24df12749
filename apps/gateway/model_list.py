"""The list of models, in the shape of OpenAI's, with what the workbench knows of each."""

import json
from typing import Any

from apps.gateway.targets import qualified_name
from apps.servers.models import ModelFacts, Server


def model_list(servers: list[Server]) -> bytes:
    """Return the JSON: each name once, and with its server's name where several have it."""
    entries: dict[str, dict[str, Any]] = {}
    counts: dict[str, int] = {}
    for server in servers:
        for model in server.model_facts:
            counts[model.id] = counts.get(model.id, 0) + 1
    for server in servers:
        for model in server.model_facts:
            entries.setdefault(model.id, _entry(model.id, server, model))
            if counts[model.id] > 1:
                name = qualified_name(server, model.id)
                entries[name] = _entry(name, server, model)
    return json.dumps({"object": "list", "data": list(entries.values())}).encode()


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
