"""Finds the model servers that answer for a model's name, the best first."""

import asyncio
import hashlib
import time

from apps.gateway.errors import GatewayError, unknown_model
from apps.gateway.program_request import ProgramRequest
from apps.llm import errors
from apps.runtime.async_db import in_db
from apps.servers.models import Server, State, Use
from apps.servers.services import (
    NoServer,
    RetryPause,
    RetryPolicy,
    Target,
    default_target,
    refresh_server,
)

# Of these another server may know nothing. Before any byte of an answer a lost connection is one.
FAILED = (errors.Unreachable, errors.Loading, errors.CutOff)
FIRST_FAILING_SECONDS = 2.0
LAST_FAILING_SECONDS = 60.0


class Pool:
    """The servers that one request may go to: one that fails before any byte makes way."""

    def __init__(self, targets: list[Target]) -> None:
        self._targets = targets
        self._policies = {target.server.pk: RetryPolicy(target.server) for target in targets}
        self._failures = 0
        self.moves = 0

    @property
    def target(self) -> Target:
        """The one whose turn it is."""
        return self._targets[0]

    @property
    def others(self) -> list[Target]:
        """Those that could answer as well now."""
        return [one for one in self._targets[1:] if _answers_now(one)]

    def move_to(self, target: Target) -> None:
        """Make it this one's turn."""
        self.moves += 1
        self._targets.sort(key=lambda one: one is not target)

    def next_pause(self, error: errors.LLMError) -> RetryPause | None:
        """Return the pause before the next attempt; None: the request has failed."""
        failed = self.target.server.pk
        if isinstance(error, FAILED):
            failing.add(failed)
            self._targets.append(self._targets.pop(0))
            self._failures += 1
            if self._failures % len(self._targets):
                return RetryPause(0.0)
        return self._policies[failed].next_pause(error, has_begun=False)

    def record_success(self) -> None:
        failing.discard(self.target.server.pk)


class Failing:
    """The servers that failed a moment ago, as this process saw it: others come before them."""

    def __init__(self) -> None:
        self._until: dict[int, tuple[float, float]] = {}

    def __contains__(self, server_id: int) -> bool:
        return time.monotonic() < self._until.get(server_id, (0.0, 0.0))[0]

    def add(self, server_id: int) -> None:
        """Leave a server out, each time in a row for twice as long."""
        if server_id not in self:
            _, before = self._until.get(server_id, (0.0, FIRST_FAILING_SECONDS / 2))
            seconds = min(2 * before, LAST_FAILING_SECONDS)
            self._until[server_id] = time.monotonic() + seconds, seconds

    def discard(self, server_id: int) -> None:
        self._until.pop(server_id, None)


failing = Failing()


def _answers_now(target: Target) -> bool:
    is_ready = target.server.state == State.READY and target.server.pk not in failing
    return is_ready and target.is_loaded


async def find_targets(request: ProgramRequest, servers: list[Server]) -> list[Target]:
    """Return every server that has the model: those first that are ready and did not just fail.

    Among them a conversation stays where it was, by the beginning of its prompt.

    Raises:
        GatewayError: nobody has the model.
    """
    if not request.model:
        return [await _default(request)]
    if not (found := having(servers, request.model)):
        servers = await refreshed(servers)
        found = having(servers, request.model)
    if not found:
        raise unknown_model(request.model, model_names(servers))
    if len(found) == 1:
        return found
    return sorted(found, key=lambda target: _rank(target, request.beginning))


async def refreshed(servers: list[Server]) -> list[Server]:
    """Return the servers with facts that are fresh."""
    return list(await asyncio.gather(*(refresh_server(server) for server in servers)))


def has_model(servers: list[Server], name: str) -> bool:
    """True if a server has a model of this name."""
    return bool(having(servers, name))


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


def having(servers: list[Server], name: str) -> list[Target]:
    """Return the servers that have a model, as they were last seen.

    Of several entries for one address the first: together they would have its slots twice.
    """
    found: dict[str, Target] = {}
    for server in servers:
        if model := server.model(name):
            found.setdefault(server.address, Target(server, model.id))
    return [*found.values()] or [
        Target(server, model.id)
        for server in servers
        for model in server.model_facts
        if qualified_name(server, model.id) == name
    ]


def _rank(target: Target, beginning: str) -> tuple[bool, bool, bool, bytes]:
    """Rendezvous hashing: when a server goes, only its own conversations move."""
    weight = hashlib.blake2b(f"{target.server.pk} {beginning}".encode(errors="replace"))
    is_away = target.server.state != State.READY
    return target.server.pk in failing, is_away, not target.is_loaded, weight.digest()


def model_names(servers: list[Server]) -> set[str]:
    """Return the names of all their models."""
    return {model for server in servers for model in server.model_ids}
