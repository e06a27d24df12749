"""Keeping what is known of a server fresh, with as few questions as possible.

How old facts may be, and when a server that failed is asked again:

    ready            15 seconds, or what the caller asks for
    a model loading  1.5 seconds
    loading          1 to 2 seconds
    unreachable      1 second, doubled with every failure up to 30, each 50 to 100 % of it
    unauthorized     60 seconds
    changed address or key: at once

Between two looks nothing is asked of anybody: not the server, not the database, not Redis. A look
is made by one caller at a time, whichever process it is in. The others use what is known, or wait
for its result where the server was not ready.
"""

import asyncio
import random
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from redis.exceptions import RedisError

from apps.llm import errors
from apps.llm.client import client_for
from apps.runtime.async_db import in_db
from apps.runtime.redis import sync_redis
from apps.servers import discovery, liveness
from apps.servers.facts import learned
from apps.servers.facts.server_facts import Facts
from apps.servers.models import Server, State

FRESH_FOR = timedelta(seconds=15)
MODEL_LOADING = timedelta(seconds=1.5)
LOADING = timedelta(seconds=2)
FIRST_RETRY = timedelta(seconds=1)
LAST_RETRY = timedelta(seconds=30)
UNAUTHORIZED = timedelta(seconds=60)

LOOK_SECONDS = 8.0
# Longer than a look can take; one that was killed amid it holds the others up no longer.
LOCK_SECONDS = 10
LOCK_POLL_SECONDS = 0.05

TOO_SLOW = (
    f"The model server did not say what it is within {LOOK_SECONDS:.0f} seconds. "
    "It may be stuck: look at its log."
)

FIELDS = ["kind", "state", "state_since", "facts", "seen", "next_look", "failures"]


async def look_at(server: Server, *, max_age: timedelta = FRESH_FOR) -> Server:
    """The server with facts no older than `max_age`, asked anew where they are.

    Args:
        max_age: zero asks now, unless a look that began after this call is there to be used.
    """
    if not _is_due(server, max_age, timezone.now()):
        return server
    began = timezone.now()
    deadline = time.monotonic() + LOCK_SECONDS
    while time.monotonic() < deadline:
        lock = await asyncio.to_thread(_take_lock, server.pk)
        if lock is not None:
            try:
                return await _look(server, max_age, began)
            finally:
                await asyncio.shield(asyncio.to_thread(_release_lock, server.pk, lock))
        if server.state == State.READY and server.seen is not None and max_age:
            return server  # somebody looks right now: these facts are seconds too old
        await asyncio.sleep(LOCK_POLL_SECONDS)
    return server


@dataclass(frozen=True, slots=True)
class Health:
    """How a server is, for people."""

    state: State
    since: datetime | None
    next_look: datetime | None
    """When a server that is not ready is asked again."""
    last_token: datetime | None
    error: str


def health(servers: Sequence[Server]) -> dict[int, Health]:
    """The state of each server, told apart from one that is stuck. Blocks; one round trip."""
    found = liveness.read([server.pk for server in servers])
    return {
        server.pk: _health(server, found.get(server.pk, liveness.Signs())) for server in servers
    }


async def ahealth(servers: Sequence[Server]) -> dict[int, Health]:
    return await asyncio.to_thread(health, servers)


async def note_alive(server: Server) -> None:
    """The first token of an answer has arrived. Call it once for each answer."""
    await liveness.alive(server.pk)
    if server.state != State.READY:
        await look_soon(server)


async def note_stuck(server: Server) -> None:
    """The server took a request and gave no token in time."""
    await liveness.stuck(server.pk)


async def note_error(server: Server, error: errors.LLMError, model: str = "") -> None:
    """What a request's failure says of the server itself. Never raises an error of its own.

    Args:
        model: which was asked.
    """
    match error:
        case errors.Stalled():
            await note_stuck(server)
        case errors.PoolExhausted():
            await note_unified(
                server, True, "observed: requests exceeded the shared context", model
            )
        case errors.Unreachable() | errors.Loading() | errors.Unauthorized():
            await look_soon(server)


async def note_tokens_held(server: Server, tokens: int, model: str = "") -> None:
    """How many tokens all slots hold together: more than one cache of a slot's size can."""
    context = server.context_of(model)
    if context is not None and tokens > context and server.unified(model) is not False:
        await note_unified(server, False, "observed: slots hold more than one shared cache", model)


async def note_unified(server: Server, value: bool, source: str, model: str = "") -> None:
    """Whether the slots share one KV cache, as was seen to be. Kept while its slots stay the same.

    Written only when it is news, so a caller may say it as often as it sees it.
    """
    scope = server.scope(model)
    if server.facts.get(learned.UNIFIED, {}).get(scope, {}).get("value") == value:
        return

    def add(facts: dict[str, Any]) -> dict[str, Any]:
        seen = facts.get(learned.UNIFIED, {})
        return {learned.UNIFIED: {**seen, scope: {"value": value, "source": source}}}

    server.facts = {**server.facts, **add(server.facts)}
    await in_db(learned.change_facts, server.pk, add)


async def look_soon(server: Server) -> None:
    """What is known of it may be wrong: the next caller looks."""
    server.next_look = timezone.now()
    await in_db(Server.objects.filter(pk=server.pk).update, next_look=server.next_look)


def _is_due(server: Server, max_age: timedelta, now: datetime) -> bool:
    if server.seen is None or not max_age:
        return True
    if server.next_look is not None and (server.state != State.READY or server.next_look <= now):
        return server.next_look <= now
    return now - server.seen >= max_age


async def _look(server: Server, max_age: timedelta, began: datetime) -> Server:
    """Looks, unless somebody else has done so meanwhile. Holds the lock."""
    row = await in_db(Server.objects.filter(pk=server.pk).first)
    if row is None:
        return server
    if (row.base_url, row.encrypted_key) == (server.base_url, server.encrypted_key):
        for name in FIELDS:
            setattr(server, name, getattr(row, name))
    looked_since = server.seen is not None and server.seen >= began
    if looked_since or (max_age and not _is_due(server, max_age, timezone.now())):
        return server
    at = timezone.now()
    facts = await _look_in_time(server)
    return await in_db(_record, server, facts, at)


async def _look_in_time(server: Server) -> Facts:
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            return await discovery.look(client_for(server.endpoint), server.facts)
    except TimeoutError:
        return Facts(State.UNREACHABLE, error=TOO_SLOW)


def _record(server: Server, facts: Facts, at: datetime) -> Server:
    was = server.state
    if facts.state != was or server.state_since is None:
        server.state_since = at
    server.state, server.seen = facts.state, at
    server.failures = server.failures + 1 if facts.state == State.UNREACHABLE else 0
    # Only if it is still the server that was asked: its address may have been changed meanwhile.
    same = Server.objects.filter(
        pk=server.pk, base_url=server.base_url, encrypted_key=server.encrypted_key
    )
    with transaction.atomic():
        # What others have learned of it while it was looked at.
        known = same.select_for_update().values_list("facts", flat=True).first()
        earlier = server.facts if known is None else known
        if facts.state == State.READY:
            server.kind = facts.kind
            server.facts = facts.as_dict() | _lasting(earlier, facts)
        else:  # what was known of it stays: it will be the same server when it is back
            server.facts = {**earlier, "error": facts.error}
        pause = _pause(server)
        server.next_look = at + pause if pause else None
        same.update(**{name: getattr(server, name) for name in FIELDS})
    if facts.state == State.READY and was in {State.UNREACHABLE, State.LOADING}:
        liveness.restarted(server.pk)
    return server


def _lasting(earlier: dict[str, object], facts: Facts) -> dict[str, object]:
    """What was learned by asking: while it is the same build, of the cache with the same slots."""
    if (earlier.get("build") or "") != facts.build:
        return {}
    names = [learned.REFUSED]
    if (earlier.get("slots"), earlier.get("context")) == (facts.slots, facts.context):
        names.append(learned.UNIFIED)
    return {name: earlier[name] for name in names if name in earlier}


def _pause(server: Server) -> timedelta | None:
    """How long not to ask again. None: as long as the facts are fresh."""
    jitter = random.uniform(0.5, 1.0)  # noqa: S311 - so that many do not ask in the same moment
    match server.state:
        case State.READY:
            loading = any(m.get("state") in {"loading", "unloading"} for m in server.model_facts)
            return MODEL_LOADING if loading else None
        case State.LOADING:
            return LOADING * jitter
        case State.UNAUTHORIZED:
            return UNAUTHORIZED * jitter
        case _:
            doubled: timedelta = FIRST_RETRY * 2 ** min(server.failures - 1, 10)
            return min(doubled, LAST_RETRY) * jitter


def _health(server: Server, found: liveness.Signs) -> Health:
    state, since = State(server.state), server.state_since
    error = str(server.facts.get("error") or "") if state != State.READY else ""
    if state == State.READY and found.stuck_since is not None:
        state, since = State.STUCK, found.stuck_since
        error = (
            "It says that it is ready, and took a request without giving a token. Warm a model up "
            "to see whether it answers again; else restart it."
        )
    waits = server.next_look if server.state != State.READY else None
    return Health(state, since, waits, found.last_token, error)


# --- One look at a time -------------------------------------------------------


def _lock_key(server_id: int) -> str:
    return f"llm:look:{server_id}"


def _take_lock(server_id: int) -> str | None:
    """Ours to look; None while somebody else does. Without Redis everybody may."""
    mine = secrets.token_hex(8)
    try:
        taken = sync_redis().set(_lock_key(server_id), mine, nx=True, ex=LOCK_SECONDS)
    except RedisError:
        return mine
    return mine if taken else None


def _release_lock(server_id: int, mine: str) -> None:
    with suppress(RedisError):
        redis = sync_redis()
        # Should it lapse right now and become somebody else's: one look too many, no harm.
        if redis.get(_lock_key(server_id)) == mine.encode():
            redis.delete(_lock_key(server_id))
