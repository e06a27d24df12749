"""Chooses the model of a server that a sweep asks."""

from datetime import timedelta

from apps.servers.models import Server, State
from apps.servers.services import Target, choose_target, refresh_server
from apps.tuning.errors import SweepError


async def choose_model(server: Server, model: str = "") -> Target:
    """Return what a sweep of this server asks.

    Raises:
        SweepError: the server is away, or has no model that generates text.
    """
    server = await refresh_server(server, max_age=timedelta())
    if server.state != State.READY:
        reason = server.facts.error or f"{State(server.state).label}."
        raise SweepError(f"“{server.name}” is not ready. {reason}")
    if model and server.model_ids and server.model(model) is None:
        raise SweepError(f"“{server.name}” has no model “{model}”.")
    target = choose_target(server, model)
    if server.swaps and not target.is_loaded:
        if model or not server.loaded_models:
            name = f"“{target.model}” is not loaded." if model else "No model is loaded."
            raise SweepError(f"{name} Load a model first, then measure it.")
        target = Target(server, server.loaded_models[0])
    if server.facts_of(target.model).embeddings:
        raise SweepError(
            f"“{target.model}” only embeds texts. Choose a server or model that generates text."
        )
    return target
