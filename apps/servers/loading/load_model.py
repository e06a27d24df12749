"""Loading, unloading and warming a model, where the server offers it.

A load may take minutes, so a page or a route only starts it (`start`): a background task waits for
the end, the model's state shows the progress, and a failure is kept for a while to be read.
"""

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import cast

from redis.exceptions import RedisError

from apps.llm import errors
from apps.llm.client import ChatRequest, Client, Message, client_for
from apps.llm.permits import Lane
from apps.runtime.redis import sync_redis
from apps.servers.kinds import llama_swap, router
from apps.servers.models import Kind, Server
from apps.servers.refresh import look_at, note_alive, note_error
from apps.servers.slots import hold_slot

# llama-swap gives a model 120 s to start unless told otherwise, a router any time; disks are slow.
LOAD_SECONDS = 900.0
FOLLOW_SECONDS = 1.0
FAILURE_KEPT_SECONDS = 600
# A prompt of a few words in any template, and one token.
WARM_TOKENS = 64


class Action(StrEnum):
    LOAD = "load"
    UNLOAD = "unload"
    WARM = "warm"


@dataclass(frozen=True, slots=True)
class Activity:
    """What is being done to a model by order of a person, or went wrong of late."""

    action: Action
    since: datetime
    error: str = ""
    """Why it failed; empty while it runs."""

    @property
    def state(self) -> str:
        return "failed" if self.error else "running"


def check(server: Server, model: str, action: Action) -> str:
    """The id of the model, if the server can be asked to do this.

    Raises:
        UnknownModel: the server names no such model.
        NotSupported: this kind of server does not do it; says what to do instead.
    """
    found = server.model(model) if model else None
    if found is None:
        raise errors.UnknownModel(f"{server.name} has no model {model!r}.")
    if action is not Action.WARM:
        if not server.swaps:
            raise errors.NotSupported(_no_swapping(server))
        if not found.get("actions") or found["actions"] == [Action.WARM]:
            raise errors.NotSupported(
                f"{found['id']} runs on another machine. {server.name} only forwards requests."
            )
    return str(found["id"])


def _no_swapping(server: Server) -> str:
    if server.kind == Kind.LLAMA_SERVER:
        return (
            f"{server.name} is a llama-server with one model, loaded as long as it runs. To load "
            "and unload models, start it in router mode (--models-dir) or behind llama-swap."
        )
    return (
        f"{server.name} is a proxy without a way to load or unload models. "
        "Add the server behind it under Servers."
    )


async def load_model(server: Server, model: str) -> None:
    """Has a model loaded, and returns when it answers. Watch its state meanwhile.

    Raises:
        NotSupported, UnknownModel: see `check`.
        LoadFailed: it did not start.
        LLMError: the server failed.
    """
    model = check(server, model, Action.LOAD)
    if server.kind == Kind.LLAMA_SWAP:  # it has no order for that: a request loads what it needs
        await _one_token(server, model)
    elif model not in server.loaded_models:
        await _order(client_for(server.endpoint), "/models/load", model, done="already running")
        await _follow(server, model)
    await look_at(server, max_age=timedelta(0))


async def unload_model(server: Server, model: str) -> None:
    """Frees the memory a model takes. What it is answering at the moment is cut off.

    Raises:
        NotSupported, UnknownModel: see `check`.
        LLMError: the server failed.
    """
    model = check(server, model, Action.UNLOAD)
    client = client_for(server.endpoint)
    if server.kind == Kind.LLAMA_SWAP:
        await client.post(llama_swap.unload_path(model), {})
    else:
        await _order(client, "/models/unload", model, done="not running")
    await look_at(server, max_age=timedelta(0))


async def warm_model(server: Server, model: str) -> None:
    """Asks a model for one token: it is then in memory, and proven to answer.

    Raises:
        UnknownModel: see `check`.
        LLMError: the server failed.
    """
    await _one_token(server, check(server, model, Action.WARM))
    await look_at(server, max_age=timedelta(0))


async def perform(server: Server, model: str, action: Action) -> None:
    match action:
        case Action.LOAD:
            await load_model(server, model)
        case Action.UNLOAD:
            await unload_model(server, model)
        case Action.WARM:
            await warm_model(server, model)


async def _one_token(server: Server, model: str) -> None:
    client = client_for(server.endpoint)
    found = server.model(model) or {}
    try:
        async with asyncio.timeout(LOAD_SECONDS):
            async with hold_slot(
                server,
                lane=Lane.INTERACTIVE,
                model=model,
                tokens=WARM_TOKENS,
                label="Warm-up",
            ) as held:
                if found.get("embeddings"):
                    await client.embed(model, ["Hello"])
                else:
                    messages: list[Message] = [{"role": "user", "content": "Hello"}]
                    answer = await client.complete(ChatRequest(model, messages, max_tokens=1))
                    held.record_usage(answer.usage)
    except TimeoutError as error:
        raise errors.Stalled("No tokens within 15 minutes.") from error
    except errors.LLMError as error:
        await note_error(server, error)
        raise
    await note_alive(server)


async def _order(client: Client, path: str, model: str, *, done: str) -> None:
    """Gives a router an order. That it is carried out already is no failure."""
    try:
        await client.post(path, {"model": model})
    except (errors.BadRequest, errors.NotLoaded) as error:
        if done not in str(error.__cause__ or error):
            raise


async def _follow(server: Server, model: str) -> None:
    deadline = time.monotonic() + LOAD_SECONDS
    while time.monotonic() < deadline:
        await asyncio.sleep(FOLLOW_SECONDS)
        await look_at(server, max_age=timedelta(0))
        found = server.model(model) or {}
        if found.get("state") in router.RUNNING:
            return
        if found.get("state") in {"failed", "unloaded"}:
            reason = found.get("error") or "The model was unloaded again."
            raise errors.LoadFailed(f"{model} failed to start. {reason} See the server’s log.")
    raise errors.LoadFailed(f"{model} was not loaded within 15 minutes.")


# --- Orders of people -----------------------------------------------------------


def start(server: Server, model: str, action: Action) -> None:
    """Has it done in the background. Blocks for a moment only.

    Raises:
        NotSupported, UnknownModel: see `check`.
    """
    from apps.servers.tasks import act_on_model  # it needs this module

    model = check(server, model, action)
    _note(server.pk, model, Activity(action, datetime.now(UTC)), int(LOAD_SECONDS))
    act_on_model.delay(server.pk, model, action.value)


async def carry_out(server: Server, model: str, action: Action) -> None:
    """Does what `start` promised, and notes how it ended."""
    activity = Activity(action, datetime.now(UTC))
    try:
        await perform(await look_at(server), model, action)
    except errors.LLMError as error:
        failed = Activity(action, activity.since, str(error))
        await asyncio.to_thread(_note, server.pk, model, failed, FAILURE_KEPT_SECONDS)
    else:
        await asyncio.to_thread(_note, server.pk, model, None, 0)


def activities(server: Server) -> dict[str, Activity]:
    """What is being done, by model. Blocks; from async code, in a thread."""
    found: dict[str, Activity] = {}
    try:
        notes = cast(dict[bytes, bytes], sync_redis().hgetall(_key(server.pk)))
    except RedisError:
        return found
    for model, value in notes.items():
        told = json.loads(value)
        if told["until"] > time.time():
            since = datetime.fromtimestamp(told["since"], UTC)
            found[model.decode()] = Activity(Action(told["action"]), since, told["error"])
    return found


def _key(server_id: int) -> str:
    return f"llm:activities:{server_id}"


def _note(server_id: int, model: str, activity: Activity | None, seconds: int) -> None:
    with suppress(RedisError):
        redis = sync_redis()
        if activity is None:
            redis.hdel(_key(server_id), model)
            return
        told = {
            "action": activity.action.value,
            "since": activity.since.timestamp(),
            "error": activity.error,
            "until": time.time() + seconds,
        }
        redis.hset(_key(server_id), model, json.dumps(told))
        redis.expire(_key(server_id), int(LOAD_SECONDS))
