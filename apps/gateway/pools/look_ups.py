"""Keys and servers as they were a moment ago, looked up again before a request has to wait for it.

A look-up is a question to a thread and two queries, 2 ms of the time to the first token. While
programs ask, what they need is read every AGAIN_SECONDS: it is never older than where each request
looks it up, and a key that no longer works ends as soon.
"""

import asyncio
import contextvars
import logging
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from django.db import Error, transaction
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from apps.core.models import ApiKey
from apps.runtime.async_db import in_db
from apps.runtime.per_loop import PerLoop
from apps.servers.models import Server

SERVERS_SECONDS = 2.0  # a server changed by another process is known this much later
# Less than keys and servers are known for, by the time that reading them takes on a busy machine.
AGAIN_SECONDS = 1.5
# A program that has not asked for so long waits for its look-up.
RECENT_SECONDS = 60.0

logger = logging.getLogger(__name__)


async def look_up(token: str) -> tuple[ApiKey | None, list[Server]]:
    """Return the working key of a token and all servers; no key, no servers."""
    key, servers = ApiKey.find_known(token), known_servers()
    found = (key, servers) if key and servers is not None else await in_db(_read, token)
    if found[0] is not None:
        _ahead.get().note_use(found[0].token_hash)
    return found


def _read(token: str) -> tuple[ApiKey | None, list[Server]]:
    key = ApiKey.find(token)
    return key, read_servers() if key else []


# --- Servers --------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Known:
    servers: list[Server] = field(default_factory=list)
    until: float = 0.0
    changes: int = 0
    """Counts what was changed here."""


_known = _Known()


def known_servers() -> list[Server] | None:
    """Return all servers as `read_servers` read them a moment ago; None: they are to be read."""
    return _known.servers if time.monotonic() < _known.until else None


def read_servers() -> list[Server]:
    """Return all servers as they were last seen. Asks the database."""
    changes = _known.changes
    servers = list(Server.objects.all())
    if changes == _known.changes:  # else what was read may be from before the change
        _known.servers, _known.until = servers, time.monotonic() + SERVERS_SECONDS
    return servers


def forget_servers() -> None:
    """Read the servers again."""
    _known.until = 0.0
    _known.changes += 1


@receiver([post_save, post_delete], sender=Server)
def forget_changed_servers(**_: object) -> None:
    """Read the servers again: one was changed here."""
    forget_servers()
    transaction.on_commit(forget_servers)  # others read what was there before until then


# --- Ahead of requests ----------------------------------------------------------------------------


class LookAhead:
    """Looks the keys that are in use up again, and the servers, in one event loop."""

    def __init__(self) -> None:
        self._used: dict[str, float] = {}
        """When each key was used last, by its hash."""
        self._task: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        return self._task is None or self._task.done()

    def note_use(self, token_hash: str) -> None:
        self._used[token_hash] = time.monotonic()
        if self.is_idle:
            # Not in the context of the request, which ends before it.
            self._task = asyncio.get_running_loop().create_task(
                self._run(), context=contextvars.Context()
            )

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(AGAIN_SECONDS)
            now = time.monotonic()
            self._used = {key: at for key, at in self._used.items() if now - at < RECENT_SECONDS}
            if not self._used:
                return
            in_use = [key for key, at in self._used.items() if now - at < 2 * AGAIN_SECONDS]
            try:
                await in_db(read_again, [*self._used], in_use)
            except Error as error:  # requests will ask it themselves
                logger.warning("Keys and servers are not looked up ahead: %s", error)


def read_again(token_hashes: Collection[str], in_use: Collection[str]) -> None:
    """Look keys and servers up, and record that some of the keys are in use."""
    found = ApiKey.look_up(token_hashes)
    for token_hash in in_use:
        if key := found.get(token_hash):
            key.record_use()
    read_servers()


_ahead = PerLoop(LookAhead, LookAhead.close)
