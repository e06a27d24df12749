"""Actions on models that run in the background, and how they ended.

A page or a route only starts an action: a task waits for the end, the model's state shows the
progress, and a failure is stored for a while.
"""

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from redis.exceptions import RedisError

from apps.llm import errors
from apps.runtime.redis import sync_redis
from apps.servers.loading.load_model import LOAD_SECONDS, Action, check_action, run_action
from apps.servers.models import Server
from apps.servers.probing.refresh import refresh_server

FAILURE_SECONDS = 600


@dataclass(frozen=True, slots=True)
class ModelActivity:
    """An action on a model that a person started, while it runs or after it failed."""

    action: Action
    since: datetime
    error: str = ""
    """The reason why it failed; empty while it runs."""

    @property
    def state(self) -> str:
        return "failed" if self.error else "running"


def start_action(server: Server, model: str, action: Action) -> None:
    """Run an action in the background. Blocks for a moment only.

    Raises:
        NotSupported, UnknownModel: see `check_action`.
    """
    from apps.servers.tasks import act_on_model  # it needs this module

    model = check_action(server, model, action)
    _store(server.pk, model, ModelActivity(action, datetime.now(UTC)), int(LOAD_SECONDS))
    act_on_model.delay(server.pk, model, action.value)


async def run_started_action(server: Server, model: str, action: Action) -> None:
    """Run an action that `start_action` has announced, and store how it ended."""
    activity = ModelActivity(action, datetime.now(UTC))
    try:
        await run_action(await refresh_server(server), model, action)
    except errors.LLMError as error:
        failed = ModelActivity(action, activity.since, str(error))
        await asyncio.to_thread(_store, server.pk, model, failed, FAILURE_SECONDS)
    else:
        await asyncio.to_thread(_store, server.pk, model, None, 0)


def model_activities(server: Server) -> dict[str, ModelActivity]:
    """The current and recently failed actions by model. Blocks."""
    found: dict[str, ModelActivity] = {}
    try:
        notes = cast(dict[bytes, bytes], sync_redis().hgetall(_key(server.pk)))
    except RedisError:
        return found
    for model, value in notes.items():
        stored = json.loads(value)
        if stored["until"] > time.time():
            since = datetime.fromtimestamp(stored["since"], UTC)
            found[model.decode()] = ModelActivity(Action(stored["action"]), since, stored["error"])
    return found


def _key(server_id: int) -> str:
    return f"llm:activities:{server_id}"


def _store(server_id: int, model: str, activity: ModelActivity | None, seconds: int) -> None:
    with suppress(RedisError):
        redis = sync_redis()
        if activity is None:
            redis.hdel(_key(server_id), model)
            return
        stored = {
            "action": activity.action.value,
            "since": activity.since.timestamp(),
            "error": activity.error,
            "until": time.time() + seconds,
        }
        redis.hset(_key(server_id), model, json.dumps(stored))
        redis.expire(_key(server_id), int(LOAD_SECONDS))
