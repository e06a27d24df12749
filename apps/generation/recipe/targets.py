"""The model server and model of a job: the choices of the editor, and the target they name."""

from dataclasses import dataclass

from apps.servers.models import ModelFacts, Server, State, Use
from apps.servers.services import (
    NoServer,
    Target,
    can_generate,
    choose_target,
    default_target,
    parse_choice,
    share_models,
)

SERVER_WORDS = {
    State.LOADING: "loading",
    State.UNREACHABLE: "offline",
    State.UNAUTHORIZED: "key rejected",
    State.UNKNOWN: "not checked",
}
MODEL_WORDS = {
    "unloaded": "not loaded",
    "loading": "loading",
    "downloading": "downloading",
    "failed": "failed to start",
}


@dataclass(frozen=True, slots=True)
class ModelOption:
    value: str
    label: str


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """The models of one server that write text, with their last known states."""

    label: str
    options: list[ModelOption]


@dataclass(frozen=True, slots=True)
class ModelChoices:
    """The options of the editor's select; the default comes first."""

    default: str
    groups: list[ServerGroup]
    shared: bool
    """True if several servers serve one model."""


def choice_value(server: Server | None, model: str) -> str:
    """The form's value for a server and model; empty for the default of generation."""
    if server is None:
        return ""
    return f"{server.pk}:{model}" if model else str(server.pk)


def model_choices(value: str) -> ModelChoices:
    """
    Args:
        value: the current choice, which is offered even where its model is gone.
    """
    servers = list(Server.objects.prefetch_related("defaults"))
    groups = [_group(server, value) for server in servers]
    try:
        default = target_label(default_target(Use.GENERATION))
    except NoServer:
        default = "no server is set"
    shown = [group for group in groups if group.options]
    return ModelChoices(default, shown, share_models(servers))


def target_of_choice(value: str) -> Target:
    """The server and model that a value of the form stands for.

    Raises:
        NoServer: it was removed, or it is empty and there is no default.
    """
    if not value:
        return default_target(Use.GENERATION)
    found = parse_choice(value, Server.objects.all())
    if found is None:
        raise NoServer("This model server was removed. Choose another one.")
    server, model = found
    return choose_target(server, model[:300], Use.GENERATION)


def requested_target(server: Server | None, model: str) -> Target:
    """The target of an API request, which may name a server, a model, both or neither.

    Raises:
        NoServer: no server was named and there is no default.
    """
    if server is not None:
        return choose_target(server, model, Use.GENERATION)
    default = default_target(Use.GENERATION)
    return Target(default.server, model) if model else default


def target_label(found: Target) -> str:
    """“Server: model”; the server alone where it has reported no model yet."""
    if found.model == "default":
        return found.server.name
    return f"{found.server.name}: {found.model}"


def stored_model(found: Target) -> str:
    """The model as a job stores it; empty: the first that the server reports."""
    return "" if found.model == "default" else found.model


def _group(server: Server, value: str) -> ServerGroup:
    words = SERVER_WORDS.get(State(server.state), "")
    models = [model for model in server.model_facts if can_generate(server, model)]
    options = [_option(server, model) for model in models]
    names = {model.id for model in models}
    number, _, wanted = value.partition(":")
    if number == str(server.pk) and wanted not in names:
        options.append(
            ModelOption(value, f"{wanted} · not available now" if wanted else "Its first model")
        )
    elif not options and not server.model_ids:
        options.append(ModelOption(str(server.pk), "Its first model"))
    return ServerGroup(f"{server.name} · {words}" if words else server.name, options)


def _option(server: Server, model: ModelFacts) -> ModelOption:
    name = model.id
    width = server.slots_of(name)
    notes = [MODEL_WORDS.get(model.state, ""), f"{width} slot{'s' * (width > 1)}"]
    return ModelOption(f"{server.pk}:{name}", " · ".join([name, *filter(None, notes)]))
