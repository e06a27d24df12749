"""The start of Workbench on one machine: checks, model files, then the processes."""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from apps.embedded import checks, database, services
from apps.embedded.errors import StartError
from apps.embedded.llama_command import Llama, preset
from apps.embedded.llama_program import LlamaProgram, find_program
from apps.embedded.memory import check_memory, models_that_fit
from apps.embedded.model_files import find
from apps.embedded.options import Options
from apps.embedded.processes import redis_server
from apps.embedded.processes.ports import check_port, free_port
from apps.embedded.processes.process_log import ProcessLog
from apps.embedded.processes.supervisor import Supervisor
from workbench.env import kept_secret

# The first import from a cold disk is slow. After this time the start has failed.
WEB_SECONDS = 90.0
MOST_SLOTS = 256

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
    key_file = options.secrets / "llama-key"
    return services.Parts(
        key=kept_secret(key_file),
        key_file=key_file,
        redis=None if options.redis_url else _redis(options),
        chat=None if options.llm_base_url else _chat(options, say),
        embeddings=None if options.embed_base_url else _embeddings(options, say),
    )


def _redis(options: Options) -> redis_server.RedisServer:
    password = kept_secret(options.secrets / "redis-password")
    return redis_server.prepare(options.data / "redis", password)


def _chat(options: Options, say: Say) -> Llama:
    program = find_program(options.llama_server)
    chosen = [name.strip() for name in options.chat_model.split(",")]
    check_program(program, options, several=len(chosen) > 1)
    found = [
        find.chat_model(name, root=options.root, folder=_models(options), report=say)
        for name in chosen
    ]
    models = tuple(model.path for model in found)
    check_memory(program, models)
    if program.path is not None:
        say(f"Chat runs on {program.path}, which computes on {program.device}.")
    llama = Llama(
        models=models,
        port=free_port(),
        context_per_slot=options.chat_context or min(model.context_per_slot for model in found),
        slots=options.chat_slots,
        program=program,
        flags=options.chat_flags,
        models_at_once=models_that_fit(program, models),
        preset_file=options.data / "models.ini" if len(models) > 1 else None,
    )
    if llama.preset_file is not None:
        llama.preset_file.write_text(preset(models), encoding="utf-8")
    return llama


def check_program(program: LlamaProgram, options: Options, *, several: bool) -> None:
    """Refuse what the wheel's llama.cpp cannot do.

    Raises:
        StartError: a `llama-server` is needed, and there is none.
    """
    wanted = "Several models (WORKBENCH_CHAT_MODEL)" if several else ""
    if options.chat_flags:
        wanted = wanted or "The flags in WORKBENCH_CHAT_FLAGS"
    if wanted and program.path is None:
        raise StartError(
            f"{wanted} need llama.cpp's own llama-server: put it on the PATH, or name it with"
            " WORKBENCH_LLAMA_SERVER."
        )
    if not 1 <= options.chat_slots <= MOST_SLOTS:
        raise StartError(f"WORKBENCH_CHAT_SLOTS must be from 1 to {MOST_SLOTS}.")
    if options.chat_context < 0:
        raise StartError("WORKBENCH_CHAT_CONTEXT must be a number of tokens per slot.")


def _embeddings(options: Options, say: Say) -> Llama:
    model = find.embed_model(options.embed_model, folder=_models(options), report=say)
    # One slot: llama.cpp computes what several hold together, and a text's vector then depends on
    # what happened to be beside it, by up to 1.5e-4 a number. Costs a third of the speed.
    return Llama(
        models=(model.path,),
        port=free_port(),
        context_per_slot=model.context_per_slot,
        embeddings=True,
    )


def _models(options: Options) -> Path:
    return options.data / "models"


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
