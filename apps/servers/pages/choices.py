"""The choice of a server and model for each use: the options and the current one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from apps.servers.models import DefaultServer, Server, Use
from apps.servers.targets import can_generate


@dataclass(frozen=True)
class Option:
    value: str
    """The server's key, and the model after a colon: "3:qwen-14b"; "3" is its first model."""
    label: str


@dataclass(frozen=True)
class OptionGroup:
    name: str
    options: list[Option]


@dataclass(frozen=True)
class UseChoice:
    """One use: the servers and models to choose from, and the one that is chosen."""

    use: Use
    groups: list[OptionGroup]
    chosen: str
    label: str
    error: str = ""
    fallback: "FallbackChoice | None" = None
    """None: there is no default that it could stand in for."""


@dataclass(frozen=True)
class FallbackChoice:
    """The servers and models that can stand in for the default of a use."""

    groups: list[OptionGroup]
    chosen: str
    """Empty: none."""
    label: str
    error: str = ""


def default_choices(
    servers: Iterable[Server], errors: Mapping[str, str] | None = None
) -> list[UseChoice]:
    """One choice per use. The servers come with their `defaults` prefetched."""
    servers = list(servers)
    chosen = {default.use: default for server in servers for default in server.defaults.all()}
    return [_choice(use, servers, chosen.get(use), errors or {}) for use in Use]


def fallback_name(use: str) -> str:
    """The name of a fallback's field in the form, and of its error."""
    return f"{use}-fallback"


def parse_choice(value: str, servers: Iterable[Server]) -> tuple[Server, str] | None:
    """The server and model that an option stands for; None if there is no such server."""
    pk, _, model = value.partition(":")
    found = next((server for server in servers if str(server.pk) == pk), None)
    return (found, model) if found else None


def _choice(
    use: Use,
    servers: list[Server],
    default: DefaultServer | None,
    errors: Mapping[str, str],
) -> UseChoice:
    chosen = (default.server_id, default.model) if default else None
    groups, error = _groups(servers, use, chosen), errors.get(use, "")
    if default is None:
        return UseChoice(use, groups, "", "Not set", error)
    server = next(server for server in servers if server.pk == default.server_id)
    model = default.model or "First available model"
    fallback = _fallback_choice(use, servers, default, errors.get(fallback_name(use), ""))
    label = f"{server.name}: {model}"
    return UseChoice(use, groups, _value(server, default.model), label, error, fallback)


def _fallback_choice(
    use: Use, servers: list[Server], default: DefaultServer, error: str
) -> FallbackChoice:
    others = [server for server in servers if server.pk != default.server_id]
    server = next((server for server in others if server.pk == default.fallback_id), None)
    chosen = (server.pk, default.fallback_model) if server else None
    groups = _groups(others, use, chosen)
    if server is None:
        return FallbackChoice(groups, "", "None", error)
    model = default.fallback_model or "First available model"
    value = _value(server, default.fallback_model)
    return FallbackChoice(groups, value, f"{server.name}: {model}", error)


def _groups(servers: list[Server], use: Use, chosen: tuple[int, str] | None) -> list[OptionGroup]:
    return [
        OptionGroup(server.name, options)
        for server in servers
        if (options := _options(server, use, chosen))
    ]


def _options(server: Server, use: Use, chosen: tuple[int, str] | None) -> list[Option]:
    """The models that suit the use, and all that do not report what they can do.

    Args:
        chosen: the key of a server and its model, which is an option in any case.
    """
    wants_embeddings = use == Use.EMBEDDINGS
    models = [
        model.id
        for model in server.model_facts
        if (model.embeddings is not False if wants_embeddings else can_generate(server, model))
    ]
    options = [Option(_value(server, model), f"{server.name}: {model}") for model in models]
    if chosen and chosen[0] == server.pk and chosen[1] not in {"", *models}:
        label = f"{server.name}: {chosen[1]} (not available)"
        options.append(Option(_value(server, chosen[1]), label))
    if not models and server.model_facts:  # it lists models, of which none suits the use
        return options
    first = Option(_value(server, ""), f"{server.name}: first available model")
    return [first, *options]


def _value(server: Server, model: str) -> str:
    return f"{server.pk}:{model}" if model else str(server.pk)
