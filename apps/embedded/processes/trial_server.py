"""Runs our llama.cpp a second time, with another micro-batch, beside the one that serves people.

Nobody waits for a restart: the second process maps the same model file, and ends after its trial.
"""

import asyncio
import hmac
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from django.conf import settings

from apps.embedded.errors import StartError
from apps.embedded.llama_program import find_program
from apps.embedded.model_files.memory import file_size, free_memory
from apps.embedded.options import LOOPBACK, from_settings
from apps.embedded.processes.ports import free_port
from apps.llm.addresses import normalised_base_url
from apps.llm.endpoint import Endpoint
from apps.llm.errors import LLMError
from apps.servers.models import Server
from apps.servers.services import Target

READY_SECONDS, END_SECONDS = 120.0, 10.0
# The context and the buffers of a trial, on top of the model.
SHARE_OF_MEMORY = 1.3
READY = b"listening on"


def can_try(server: Server) -> bool:
    """True if a server is the chat server that Workbench started, with the wheel's llama.cpp."""
    options = from_settings()
    if not server.from_settings or not settings.LLM_BASE_URL:
        return False
    if server.base_url != normalised_base_url(settings.LLM_BASE_URL):
        return False
    try:
        key = options.llama_key_file.read_bytes().strip()
        is_ours = hmac.compare_digest(key, settings.LLM_API_KEY.encode())
        return is_ours and find_program(options.llama_server).path is None
    except (OSError, StartError):
        return False


@asynccontextmanager
async def trial_server(server: Server, ubatch: int, context: int) -> AsyncIterator[Endpoint | None]:
    """Run a second server until the block ends.

    Args:
        ubatch: tokens computed at once.
        context: tokens of its one slot.

    Yields:
        Its address; None where it does not start, or memory is short.
    """
    model = await _model_of(server)
    if model is None:
        yield None
        return
    key_file, port = from_settings().llama_key_file, free_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "apps.embedded.llama_server", "--model", model),
        *("--port", str(port), "--api-key-file", key_file, "--parallel", "1"),
        *("--context-per-slot", str(context), "--ubatch", str(ubatch)),
        cwd=settings.BASE_DIR,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        is_ready = await _becomes_ready(process)
        url = f"http://{LOOPBACK}:{port}/v1"
        yield Endpoint(url, settings.LLM_API_KEY) if is_ready else None
    finally:
        await _end(process)


async def _model_of(server: Server) -> Path | None:
    """The model's file, if it fits into memory once more."""
    try:
        props = await Target(server, "").client.get("/props")
    except LLMError:
        return None
    path = Path(str(props.get("model_path") or "")) if isinstance(props, dict) else Path()
    free = free_memory()
    if not path.is_file() or free is None or free < SHARE_OF_MEMORY * file_size(path):
        return None
    return path


async def _becomes_ready(process: asyncio.subprocess.Process) -> bool:
    assert process.stdout is not None
    with suppress(TimeoutError):
        async with asyncio.timeout(READY_SECONDS):
            while line := await process.stdout.readline():
                if READY in line:
                    return True
    return False


async def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(END_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
