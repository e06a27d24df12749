"""Loading, unloading and warming a model, where the server offers it.

A load may take minutes: pages and routes start it in the background, see `activities`.
"""

import asyncio
import time
from datetime import timedelta
from enum import StrEnum

from apps.llm import errors
from apps.llm.client import ChatRequest, Client, Message, client_for
from apps.llm.permits import Lane
from apps.servers.kinds import llama_swap
from apps.servers.loading.download import check_download, delete_model, download_model
from apps.servers.models import Kind, Server
from apps.servers.observations import record_answer, record_error
from apps.servers.probing.refresh import refresh_server
from apps.servers.slots.hold_slot import hold_slot

# llama-swap gives a model 120 s to start unless told otherwise, a router any time; disks are slow.
LOAD_SECONDS = 900.0
POLL_SECONDS = 1.0
# A prompt of a few words in any template, and one token.
WARM_TOKENS = 64


class Action(StrEnum):
    LOAD = "load"
    UNLOAD = "unload"
    WARM = "warm"
    DOWNLOAD = "download"
    DELETE = "delete"


def check_action(server: Server, model: str, action: Action) -> str:
    """Return the id of the model, if the server offers this action.

    Raises:
        UnknownModel: the server lists no such model.
        NotSupported: this kind of server does not offer it; the message says what to do instead.
    """
    if action is Action.DOWNLOAD:
        return check_download(server, model)
    found = server.model(model) if model else None
    if found is None:
        raise errors.UnknownModel(f"{server.name} has no model {model!r}.")
    if action is Action.DELETE and action not in found.actions:
        raise errors.NotSupported(
            f"{server.name} deletes only models that it downloaded itself. {found.id} is none."
        )
    if action is not Action.WARM:
        if not server.swaps:
            raise errors.NotSupported(_no_swapping(server))
        if not found.actions or found.actions == [Action.WARM]:
            raise errors.NotSupported(
                f"{found.id} runs on another machine. {server.name} only forwards requests."
            )
    return found.id


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
    """Load a model, and return when it answers. Its state shows the progress.

    Raises:
        NotSupported, UnknownModel: see `check_action`.
        LoadFailed: it did not start.
        LLMError: the server failed.
    """
    model = check_action(server, model, Action.LOAD)
    if server.kind == Kind.LLAMA_SWAP:  # it has no route for that: a request loads its model
        await _one_token(server, model)
    elif model not in server.loaded_models:
        await _post_action(
            client_for(server.endpoint), "/models/load", model, done="already running"
        )
        await _wait_until_loaded(server, model)
    await refresh_server(server, max_age=timedelta(0))


async def unload_model(server: Server, model: str) -> None:
    """Free the memory of a model. Requests that it is answering are cut off.

    Raises:
        NotSupported, UnknownModel: see `check_action`.
        LLMError: the server failed.
    """
    model = check_action(server, model, Action.UNLOAD)
    client = client_for(server.endpoint)
    if server.kind == Kind.LLAMA_SWAP:
        await client.post(llama_swap.unload_path(model), {})
    else:
        await _post_action(client, "/models/unload", model, done="not running")
    await refresh_server(server, max_age=timedelta(0))


async def warm_model(server: Server, model: str) -> None:
    """Ask a model for one token: it is then in memory, and proven to answer.

    Raises:
        UnknownModel: see `check_action`.
        LLMError: the server failed.
    """
    await _one_token(server, check_action(server, model, Action.WARM))
    await refresh_server(server, max_age=timedelta(0))


async def run_action(server: Server, model: str, action: Action) -> None:
    """Run an action to its end.

    Raises:
        LLMError: see the function of each action.
    """
    match action:
        case Action.LOAD:
            await load_model(server, model)
        case Action.UNLOAD:
            await unload_model(server, model)
        case Action.WARM:
            await warm_model(server, model)
        case Action.DOWNLOAD:
            await download_model(server, model)
        case Action.DELETE:
            await delete_model(server, check_action(server, model, action))


async def _one_token(server: Server, model: str) -> None:
    client = client_for(server.endpoint)
    found = server.facts_of(model)
    try:
        async with asyncio.timeout(LOAD_SECONDS):
            async with hold_slot(
                server,
                lane=Lane.INTERACTIVE,
                model=model,
                tokens=WARM_TOKENS,
                label="Warm-up",
            ) as held:
                if found.embeddings:
                    await client.embed(model, ["Hello"])
                else:
                    messages: list[Message] = [{"role": "user", "content": "Hello"}]
                    answer = await client.complete(ChatRequest(model, messages, max_tokens=1))
                    held.record_usage(answer.usage)
    except TimeoutError as error:
        raise errors.Stalled("No tokens within 15 minutes.") from error
    except errors.LLMError as error:
        await record_error(server, error)
        raise
    await record_answer(server)


async def _post_action(client: Client, path: str, model: str, *, done: str) -> None:
    """Post an action to a router; an error that contains `done` means that nothing is to do."""
    try:
        await client.post(path, {"model": model})
    except (errors.BadRequest, errors.NotLoaded) as error:
        if done not in str(error.__cause__ or error):
            raise


async def _wait_until_loaded(server: Server, model: str) -> None:
    deadline = time.monotonic() + LOAD_SECONDS
    while time.monotonic() < deadline:
        await asyncio.sleep(POLL_SECONDS)
        await refresh_server(server, max_age=timedelta(0))
        found = server.facts_of(model)
        if found.is_loaded:
            return
        if found.state in {"failed", "unloaded"}:
            reason = found.error or "The model was unloaded again."
            raise errors.LoadFailed(f"{model} failed to start. {reason} See the server’s log.")
    raise errors.LoadFailed(f"{model} was not loaded within 15 minutes.")
