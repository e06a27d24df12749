"""The state of a server for people: the last probe's, or stuck where no tokens come."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from apps.servers.liveness import Liveness, read_liveness
from apps.servers.models import Server, State

STUCK = (
    "It says that it is ready, and took a request without giving a token. Warm a model up "
    "to see whether it answers again; else restart it."
)


@dataclass(frozen=True, slots=True)
class Health:
    state: State
    since: datetime | None
    next_check_at: datetime | None
    """The next probe of a server that is not ready."""
    last_token: datetime | None
    error: str


def read_health(servers: Sequence[Server]) -> dict[int, Health]:
    """The health of each server by its key. Blocks; one round trip to Redis."""
    found = read_liveness([server.pk for server in servers])
    return {server.pk: _health(server, found.get(server.pk, Liveness())) for server in servers}


async def aread_health(servers: Sequence[Server]) -> dict[int, Health]:
    return await asyncio.to_thread(read_health, servers)


def _health(server: Server, liveness: Liveness) -> Health:
    state, since = State(server.state), server.state_since
    error = server.facts.error if state != State.READY else ""
    if state == State.READY and liveness.stuck_since is not None:
        state, since, error = State.STUCK, liveness.stuck_since, STUCK
    next_check = server.next_check_at if server.state != State.READY else None
    return Health(state, since, next_check, liveness.last_token, error)
