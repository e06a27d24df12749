"""The processes of Workbench on one machine: options in, children out."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from apps.embedded.llama_command import Llama, command
from apps.embedded.options import LOOPBACK, Options
from apps.embedded.processes.readiness import http_ready
from apps.embedded.processes.redis_server import RedisServer
from apps.embedded.processes.supervisor import Child

# Else each process that multiplies matrices starts a thread per core, beside llama.cpp's.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# Django's checks import every page, which these do not serve: 1 s of CPU and 16 MB a start.
NO_CHECKS = {"CELERY_SKIP_CHECKS": "1"}
# For training and imports; jobs run in the pumps.
WORKER_PROCESSES = 3


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What the embedded processes need; None where the settings name an external server."""

    key: str
    """API key of the embedded llama.cpp servers."""
    key_file: Path
    redis: RedisServer | None
    chat: Llama | None
    embeddings: Llama | None


def children(options: Options, parts: Parts, inherited: Mapping[str, str]) -> list[Child]:
    """Return all processes. Redis and the web server start first: a person waits for them."""
    env = child_env(options, parts, inherited)
    redis = [parts.redis.child(env)] if parts.redis is not None else []
    llamas = _llamas(parts, env)
    servers = [child.name for child in [*redis, *llamas]]
    web = _web(options, env, servers)
    return [*redis, *llamas, web, *_background(options, env, servers)]


def child_env(options: Options, parts: Parts, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of all children: `inherited` plus the embedded servers."""
    changes = {
        "WORKBENCH_DATA": str(options.data),
        "DJANGO_SETTINGS_MODULE": "workbench.settings",
        "PYTHONUNBUFFERED": "1",  # lines reach the log at once
        "EMBED_API_KEY": options.embed_api_key,
        "LLM_API_KEY": options.llm_api_key,
    }
    if parts.redis is not None:
        changes["REDIS_URL"] = parts.redis.url
    if parts.chat is not None:
        changes |= {"LLM_BASE_URL": parts.chat.base_url, "LLM_API_KEY": parts.key}
        if parts.chat.shares_cache is not None:  # no route of the server reports it
            changes["LLM_KV_UNIFIED"] = str(parts.chat.shares_cache).lower()
        changes["WORKBENCH_CHAT_DEVICE"] = parts.chat.program.device
    if parts.embeddings is not None:
        changes |= {"EMBED_BASE_URL": parts.embeddings.base_url, "EMBED_API_KEY": parts.key}
    # One person at their own machine may add commands of tool servers. Elsewhere they are off.
    if not inherited.keys() & {"WORKBENCH_MCP_COMMANDS", "WORKBENCH_MCP_COMMANDS_FILE"}:
        changes["WORKBENCH_MCP_COMMANDS"] = "true"
    # A secret from a file would override these values; the settings have read it already.
    from_files = {f"{name}_FILE" for name in changes}
    return {k: v for k, v in inherited.items() if k not in from_files} | changes


def _llamas(parts: Parts, env: Mapping[str, str]) -> list[Child]:
    named = {"chat-model": parts.chat, "embed-model": parts.embeddings}
    return [
        Child(
            name=name,
            argv=command(llama, parts.key_file),
            env=env,
            ready=http_ready(LOOPBACK, llama.port),
            late=True,
        )
        for name, llama in named.items()
        if llama is not None
    ]


def _web(options: Options, env: Mapping[str, str], servers: list[str]) -> Child:
    return Child(
        name="web",
        argv=[
            *(sys.executable, "-m", "uvicorn", "workbench.asgi:application"),
            *("--host", options.host, "--port", str(options.port)),
            *("--loop", "uvloop", "--http", "httptools", "--lifespan", "off"),
            *("--no-access-log", "--no-proxy-headers", "--timeout-graceful-shutdown", "2"),
        ],
        env=env,
        # 4xx counts as ready: WORKBENCH_HOSTS may not list the address used here.
        ready=http_ready(options.reachable_host, options.port, below=500),
        after=["redis"] if "redis" in servers else [],
        uses=servers,
        needed=True,
    )


def _background(options: Options, env: Mapping[str, str], servers: list[str]) -> list[Child]:
    celery = [sys.executable, "-m", "celery", "-A", "workbench"]
    return [
        Child(
            name="pumps",
            argv=[sys.executable, "manage.py", "run_pumps"],
            env={**env, **ONE_THREAD},
            late=True,
            uses=servers,
        ),
        Child(
            name="worker",
            argv=[
                *(*celery, "worker", "-Q", "default", "-c", str(WORKER_PROCESSES)),
                *("--loglevel", "INFO", "-n", "workbench@%h"),
                *("--without-gossip", "--without-mingle"),
            ],
            # SIGTERM as SIGQUIT: finish short tasks, put the others back in the queue.
            env={**env, **ONE_THREAD, **NO_CHECKS, "REMAP_SIGTERM": "SIGQUIT"},
            late=True,
            uses=servers,
            grace=15.0,  # above CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT
        ),
        Child(
            name="beat",
            argv=[
                *(*celery, "beat", "--loglevel", "WARNING", "--pidfile="),
                *("-s", options.data / "celerybeat-schedule"),
            ],
            env={**env, **ONE_THREAD, **NO_CHECKS},
            late=True,
            uses=servers,
        ),
    ]
