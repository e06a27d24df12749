"""Finds the model servers that answer for a model's name, the best first."""

import asyncio
import hashlib

from apps.gateway.errors import GatewayError
from apps.gateway.program_request import ProgramRequest
from apps.runtime.async_db import in_db
from apps.servers.models import Server, State, Use
from apps.servers.services import NoServer, Target, default_target, refresh_server

NAMED = 8  # models in an error message


def read_servers() -> list[Server]:
    """Return all servers as they were last seen. Asks the database."""
    return list(Server.objects.all())


async def find_targets(request: ProgramRequest, servers: list[Server]) -> list[Target]:
    """Return every server that has the model: those that are ready first.

    Among them a conversation stays where it was, by the beginning of its prompt.

    Raises:
        GatewayError: nobody has the model.
    """
    if not request.model:
        return [await _default(request)]
    if not (found := _having(servers, request.model)):
        servers = await refreshed(servers)
        found = _having(servers, request.model)
    if not found:
        raise _unknown(request.model, servers)
    if len(found) == 1:
        return found
    return sorted(found, key=lambda target: _rank(target, request.beginning))


async def refreshed(servers: list[Server]) -> list[Server]:
    """Return the servers with facts that are fresh."""
    return list(await asyncio.gather(*(refresh_server(server) for server in servers)))


def qualified_name(server: Server, model: str) -> str:
    """Return the name of a model at one server, where several have it."""
    return f"{server.name}/{model}"


async def _default(request: ProgramRequest) -> Target:
    use = Use.EMBEDDINGS if request.route.embeds else Use.CHAT
    try:
        target = await in_db(default_target, use)
        were_known = bool(target.server.model_ids)
        server = await refresh_server(target.server)
        if not were_known:
            target = await in_db(default_target, use)
    except NoServer as error:
        raise GatewayError(404, "model_not_found", str(error)) from None
    return Target(server, target.model)


def _having(servers: list[Server], name: str) -> list[Target]:
    found = [Target(server, model.id) for server in servers if (model := server.model(name))]
    return found or [
        Target(server, model.id)
        for server in servers
        for model in server.model_facts
        if qualified_name(server, model.id) == name
    ]


def _rank(target: Target, beginning: str) -> tuple[bool, bool, bytes]:
    """Rendezvous hashing: when a server goes, only its own conversations move."""
    weight = hashlib.blake2b(f"{target.server.pk} {beginning}".encode(errors="replace"))
    return target.server.state != State.READY, not target.is_loaded, weight.digest()


def _unknown(name: str, servers: list[Server]) -> GatewayError:
    known = sorted({model for server in servers for model in server.model_ids})
    listed = ", ".join(known[:NAMED]) + (", …" if len(known) > NAMED else "")
    have = f"There are {listed}." if known else "No model server reports a model now."
    return GatewayError(404, "model_not_found", f"No model server has “{name[:100]}”. {have}")
