"""Refreshes the facts about a server with as few requests as possible.

The age that facts may have, and the next check of a server that failed:

    ready            15 seconds, or what the caller asks for
    a model loading  1.5 seconds
    loading          1 to 2 seconds
    unreachable      1 second, doubled with every failure up to 30, each 50 to 100 % of it
    unauthorized     60 seconds
    changed address or key: at once

Between two probes nothing is asked: not the server, not the database, not Redis. One caller at a
time probes, whichever process it is in. The others use the facts they have, or wait for the result
where the server was not ready.
"""

import asyncio
import random
import time
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from apps.llm.client import client_for
from apps.runtime.async_db import in_db
from apps.servers import liveness
from apps.servers.facts.server_facts import ServerFacts
from apps.servers.models import Server, State
from apps.servers.probing import discovery, refresh_lock
from apps.servers.probing.embedded_download import show_download

FRESH_FOR = timedelta(seconds=15)
MODEL_LOADING = timedelta(seconds=1.5)
LOADING = timedelta(seconds=2)
FIRST_RETRY = timedelta(seconds=1)
LAST_RETRY = timedelta(seconds=30)
UNAUTHORIZED = timedelta(seconds=60)

PROBE_SECONDS = 8.0
LOCK_POLL_SECONDS = 0.05

TOO_SLOW = (
    f"The model server did not say what it is within {PROBE_SECONDS:.0f} seconds. "
    "It may be stuck: look at its log."
)

FIELDS = [
    *("kind", "state", "state_since", "stored_facts"),
    *("checked_at", "next_check_at", "failed_checks"),
]


async def refresh_server(server: Server, *, max_age: timedelta = FRESH_FOR) -> Server:
    """Return the server with facts no older than `max_age`; probe it where they are older.

    Args:
        max_age: zero probes now, unless a probe that began after this call can be used.
    """
    if not _is_due(server, max_age, timezone.now()):
        return server
    called_at = timezone.now()
    deadline = time.monotonic() + refresh_lock.LOCK_SECONDS
    while time.monotonic() < deadline:
        lock = await asyncio.to_thread(refresh_lock.acquire, server.pk)
        if lock is not None:
            try:
                return await _refresh_locked(server, max_age, called_at)
            finally:
                await asyncio.shield(asyncio.to_thread(refresh_lock.release, server.pk, lock))
        if server.state == State.READY and server.checked_at is not None and max_age:
            return server  # another caller is probing: these facts are seconds too old
        await asyncio.sleep(LOCK_POLL_SECONDS)
    return server


async def mark_stale(server: Server) -> None:
    """Have the next caller probe: the facts may be wrong."""
    server.next_check_at = timezone.now()
    rows = Server.objects.filter(pk=server.pk)
    await in_db(rows.update, next_check_at=server.next_check_at)


def _is_due(server: Server, max_age: timedelta, now: datetime) -> bool:
    if server.checked_at is None or not max_age:
        return True
    next_check = server.next_check_at
    if next_check is not None and (server.state != State.READY or next_check <= now):
        return next_check <= now
    return now - server.checked_at >= max_age


async def _refresh_locked(server: Server, max_age: timedelta, called_at: datetime) -> Server:
    """Probe, unless another caller has done so meanwhile."""
    row = await in_db(Server.objects.filter(pk=server.pk).first)
    if row is None:
        return server
    if (row.base_url, row.encrypted_key) == (server.base_url, server.encrypted_key):
        for name in FIELDS:
            setattr(server, name, getattr(row, name))
    probed_since = server.checked_at is not None and server.checked_at >= called_at
    if probed_since or (max_age and not _is_due(server, max_age, timezone.now())):
        return server
    started_at = timezone.now()
    facts = await _probe_in_time(server)
    return await in_db(_save, server, facts, started_at)


async def _probe_in_time(server: Server) -> ServerFacts:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return await discovery.probe(client_for(server.endpoint), server.facts)
    except TimeoutError:
        return ServerFacts(State.UNREACHABLE, error=TOO_SLOW)


def _save(server: Server, facts: ServerFacts, started_at: datetime) -> Server:
    before = server.state
    show_download(server, facts)
    if facts.state != before or server.state_since is None:
        server.state_since = started_at
    server.state, server.checked_at = facts.state, started_at
    failed = facts.state == State.UNREACHABLE
    server.failed_checks = server.failed_checks + 1 if failed else 0
    # Only if it is still the server that was asked: its address may have been changed meanwhile.
    same = Server.objects.filter(
        pk=server.pk, base_url=server.base_url, encrypted_key=server.encrypted_key
    )
    with transaction.atomic():
        # Read again: requests may have shown something while the probe ran.
        stored = same.select_for_update().values_list("stored_facts", flat=True).first()
        earlier = server.facts if stored is None else ServerFacts.from_json(stored)
        if facts.state == State.READY:
            server.kind = facts.kind
            _keep_observations(earlier, facts)
            server.stored_facts = facts.to_json()
        else:  # the other facts stay: it will be the same server when it is back
            earlier.error = facts.error
            earlier.is_downloading, earlier.downloaded = facts.is_downloading, facts.downloaded
            earlier.is_starting = facts.is_starting
            server.stored_facts = earlier.to_json()
        pause = pause_before_probe(server)
        server.next_check_at = started_at + pause if pause else None
        same.update(**{name: getattr(server, name) for name in FIELDS})
    if facts.state == State.READY and before in {State.UNREACHABLE, State.LOADING}:
        liveness.clear_stall(server.pk)
    return server


def _keep_observations(earlier: ServerFacts, facts: ServerFacts) -> None:
    """Keep what requests have shown: while the build is the same, of the cache with its slots."""
    if earlier.build != facts.build:
        return
    facts.refused_fields = earlier.refused_fields
    facts.measured_widths = earlier.measured_widths
    facts.best_widths = earlier.best_widths
    facts.canaries = earlier.canaries
    if (earlier.slots, earlier.context) == (facts.slots, facts.context):
        facts.observed_unified = earlier.observed_unified


def pause_before_probe(server: Server) -> timedelta | None:
    """The time without a probe. None: as long as the facts are fresh."""
    jitter = random.uniform(0.5, 1.0)  # noqa: S311 - so that many do not ask in the same moment
    match server.state:
        case State.READY:
            is_loading = any(m.state in {"loading", "unloading"} for m in server.model_facts)
            return MODEL_LOADING if is_loading else None
        case State.LOADING:
            return LOADING * jitter
        case State.UNAUTHORIZED:
            return UNAUTHORIZED * jitter
        case _:
            doubled: timedelta = FIRST_RETRY * 2 ** min(server.failed_checks - 1, 10)
            return min(doubled, LAST_RETRY) * jitter
