"""Downloads models from Hugging Face into a router's cache, and deletes them from it.

llama-server's router does both itself (POST and DELETE /models). It lists a model that it is
downloading, and drops a download that failed.
"""

import asyncio
import re
from contextlib import suppress
from datetime import timedelta
from urllib.parse import quote

from apps.llm import errors
from apps.llm.client import Client, client_for
from apps.servers.kinds.listing import items_of
from apps.servers.models import Kind, Server
from apps.servers.probing.refresh import refresh_server

POLL_SECONDS = 1.0
# Polls that may fail in a row: the router answers late while it checks gigabytes.
MOST_FAILED_POLLS = 30
REPOSITORY = re.compile(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}(:[\w.-]{1,64})?", re.ASCII)


def check_download(server: Server, model: str) -> str:
    """Return the name of a model that the server can download.

    Raises:
        NotSupported: the server downloads none, or this is no name of a repository.
    """
    if server.kind != Kind.ROUTER:
        raise errors.NotSupported(
            f"{server.name} cannot download models. A llama-server in router mode can."
        )
    if not REPOSITORY.fullmatch(model):
        raise errors.NotSupported(
            "Give a repository on Hugging Face as owner/name or owner/name:quantisation, as in "
            "ggml-org/gemma-3-4b-it-GGUF:Q4_K_M."
        )
    return model


async def download_model(server: Server, model: str) -> None:
    """Download a model, and return when the server has it. Cancelling this stops the download.

    Raises:
        NotSupported: see `check_download`.
        LoadFailed: the download failed.
        LLMError: the server failed.
    """
    check_download(server, model)
    client = client_for(server.endpoint)
    if not await _is_downloading(client, model):  # else a worker before us has started it
        await client.post("/models", {"model": model})
    try:
        await _wait_until_ended(client, model)
    except asyncio.CancelledError:
        with suppress(errors.LLMError):
            await client.post("/models/unload", {"model": model})
        raise
    server = await refresh_server(server, max_age=timedelta(0))
    # Asked for without a quantisation, it is listed with the one that was chosen. The router says
    # that a download has finished also where there was nothing to download.
    wanted = model.casefold()
    if not any(f"{name.casefold()}:".startswith(f"{wanted}:") for name in server.model_ids):
        raise errors.LoadFailed(
            f"{model} could not be downloaded. Does the repository have this file, is there space "
            "on the server’s disk, and does the server reach Hugging Face? See its log."
        )


async def _wait_until_ended(client: Client, model: str) -> None:
    failed = 0
    while True:
        await asyncio.sleep(POLL_SECONDS)
        try:
            if not await _is_downloading(client, model):
                return
            failed = 0
        except errors.LLMError:
            failed += 1
            if failed > MOST_FAILED_POLLS:
                raise


async def _is_downloading(client: Client, model: str) -> bool:
    return any(
        item["id"] == model and (item.get("status") or {}).get("value") == "downloading"
        for item in items_of(await client.get("/models"))
    )


async def delete_model(server: Server, model: str) -> None:
    """Delete the files of a model that the server downloaded; a loaded one is unloaded first.

    Raises:
        LLMError: the server failed, or does not have the model in its cache.
    """
    await client_for(server.endpoint).delete(f"/models?model={quote(model, safe='')}")
    await refresh_server(server, max_age=timedelta(0))
