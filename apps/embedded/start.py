"""The start of Workbench on one machine: checks, then the processes."""

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Mapping

from apps.embedded import checks, database, services
from apps.embedded.errors import StartError
from apps.embedded.llama_command import Llama
from apps.embedded.llama_setup import chat_llama, embeddings_llama
from apps.embedded.options import Options
from apps.embedded.processes import redis_server
from apps.embedded.processes.ports import check_port, free_port
from apps.embedded.processes.process_log import ProcessLog
from apps.embedded.processes.supervisor import Supervisor
from apps.runtime.download_progress import DownloadProgress, progress_file, write_progress
from workbench.env import kept_secret

# The first import from a cold disk is slow. After this time the start has failed.
WEB_SECONDS = 90.0

Say = Callable[[str], None]


def start(options: Options, *, say: Say, announce: Say) -> None:
    """Run Workbench until a signal ends it; `announce` gets the line with its address.

    Raises:
        StartError: a check failed, or a needed process did not start.
    """
    with checks.held_folder(options.data):
        check_port(options.host, options.port)
        if options.redis_url:
            checks.check_redis(options.redis_url)
        try:
            parts = prepare(options, say)
        except OSError as error:
            raise StartError(f"The data folder {options.data} cannot be used: {error}") from error
        if not database.looks_current(options.root, options.database):
            database.migrate_if_needed(say)
        asyncio.run(_run(options, parts, say, announce))


def prepare(options: Options, say: Say) -> services.Parts:
    """Create the files, keys and ports of the embedded processes."""
    shutil.rmtree(options.data / "downloads", ignore_errors=True)  # of a start before
    return services.Parts(
        key=kept_secret(options.llama_key_file),
        key_file=options.llama_key_file,
        redis=None if options.redis_url else _redis(options),
        chat=None if options.llm_base_url else _chat(options, say),
        embeddings=None if options.embed_base_url else _embeddings(options, say),
    )


def _redis(options: Options) -> redis_server.RedisServer:
    password = kept_secret(options.secrets / "redis-password")
    return redis_server.prepare(options.data / "redis", password)


def _chat(options: Options, say: Say) -> Llama:
    llama = chat_llama(options, port=free_port())
    if llama.program.path is not None:
        say(f"Chat runs on {llama.program.path}, which computes on {llama.program.device}.")
    _announce(options, llama, say)
    return llama


def _embeddings(options: Options, say: Say) -> Llama:
    llama = embeddings_llama(options, port=free_port())
    _announce(options, llama, say)
    return llama


def _announce(options: Options, llama: Llama, say: Say) -> None:
    """Tell the pages why the server will not answer yet: it downloads its model, or starts."""
    if llama.missing:
        say(f"Downloading {', '.join(llama.missing)}. The Servers page shows the progress.")
        progress = DownloadProgress(model=llama.missing[0])
    else:
        progress = DownloadProgress(model="the model", started_at=time.time())
    write_progress(progress_file(options.data, llama.port), progress)


async def _run(options: Options, parts: services.Parts, say: Say, announce: Say) -> None:
    children = services.children(options, parts, os.environ)
    log = ProcessLog(options.log)
    supervisor = Supervisor(children, folder=options.root, log=log, say=say)
    env = services.child_env(options, parts, os.environ)
    try:
        await supervisor.run(lambda: _announce_when_ready(supervisor, options, env, say, announce))
    finally:
        log.close()


async def _announce_when_ready(
    supervisor: Supervisor, options: Options, env: Mapping[str, str], say: Say, announce: Say
) -> None:
    path, _ = await asyncio.gather(
        asyncio.to_thread(database.register, env, say), _web_ready(supervisor)
    )
    announce(f"Workbench is ready: {options.address}{path}")


async def _web_ready(supervisor: Supervisor) -> None:
    try:
        async with asyncio.timeout(WEB_SECONDS):
            await supervisor.wait_ready("web")
    except TimeoutError as error:
        raise StartError(
            f"The web server did not respond within {WEB_SECONDS:.0f} seconds."
            " See the log in the data folder."
        ) from error
