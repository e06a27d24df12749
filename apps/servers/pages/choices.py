"""Which server and model each use gets: what there is to choose from, and what was chosen."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apps.servers.models import DefaultServer, Server, Use

# Names of models that only embed, for servers that do not say what a model can do.
_EMBEDS = re.compile(
    r"embed|(?:^|[/_:-])(?:bge|gte|e5|minilm|sentence-t5)(?:[_:.-]|$)", re.IGNORECASE
)


@dataclass(frozen=True)
class Option:
    value: str
    """The server's number, and the model's name after a colon: "3:qwen-14b"; "3" is whichever
    model the server names first."""
    label: str


@dataclass(frozen=True)
class Group:
    name: str
    options: list[Option]


@dataclass(frozen=True)
class Choice:
    """One use: the servers and models to choose from, and the one that is chosen."""

    use: Use
    groups: list[Group]
    chosen: str
    in_words: str
    error: str = ""


def choices(servers: Iterable[Server], errors: Mapping[str, str] | None = None) -> list[Choice]:
    """One choice per use. The servers come with their `defaults` prefetched."""
    servers = list(servers)
    chosen = {default.use: default for server in servers for default in server.defaults.all()}
    return [_choice(use, servers, chosen.get(use), (errors or {}).get(use, "")) for use in Use]


def parse(value: str, servers: Iterable[Server]) -> tuple[Server, str] | None:
    """The server and model that an option stands for; None if there is no such server."""
    number, _, model = value.partition(":")
    found = next((server for server in servers if str(server.pk) == number), None)
    return (found, model) if found else None


def writes(server: Server, model: Mapping[str, Any]) -> bool:
    """Whether a model can write text, as far as is known: what the server says, else its name, else
    what the server is used for. The server comes with its `defaults` prefetched."""
    if model.get("embeddings") is not None or embeds(model):
        return not embeds(model)
    return {default.use for default in server.defaults.all()} != {Use.EMBEDDINGS}


def embeds(model: Mapping[str, Any]) -> bool:
    """Whether a model is known to embed: the server says so, or its name."""
    told = model.get("embeddings")
    return bool(told) if told is not None else bool(_EMBEDS.search(str(model["id"])))


def _choice(use: Use, servers: list[Server], default: DefaultServer | None, error: str) -> Choice:
    groups = [
        Group(server.name, options)
        for server in servers
        if (options := _options(server, use, default))
    ]
    if default is None:
        return Choice(use, groups, "", "Not set", error)
    server = next(server for server in servers if server.pk == default.server_id)
    model = default.model or "First available model"
    return Choice(use, groups, _value(server, default.model), f"{server.name}: {model}", error)


def _options(server: Server, use: Use, default: DefaultServer | None) -> list[Option]:
    """Models that can do it; of those that do not say what they can, all."""
    wants_embeddings = use == Use.EMBEDDINGS
    models = [
        model["id"]
        for model in server.facts.get("models", [])
        if (model.get("embeddings") is not False if wants_embeddings else writes(server, model))
    ]
    options = [Option(_value(server, model), f"{server.name}: {model}") for model in models]
    if default and default.server_id == server.pk and default.model not in {"", *models}:
        label = f"{server.name}: {default.model} (not available)"
        options.append(Option(_value(server, default.model), label))
    if not models and server.model_facts:  # it names some, of which none can do it
        return options
    first = Option(_value(server, ""), f"{server.name}: first available model")
    return [first, *options]


def _value(server: Server, model: str) -> str:
    return f"{server.pk}:{model}" if model else str(server.pk)
