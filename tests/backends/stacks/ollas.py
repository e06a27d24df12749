"""Olla in front of two llama-servers with the same model, and one that embeds."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.backends.backend import Backend, ServingProcess
from tests.backends.model_files import ModelFiles
from tests.backends.process import ProgramProcess
from tests.backends.programs import command
from tests.backends.relay import Relay
from tests.backends.stacks import Stack
from tests.backends.stacks.llama_servers import chat_server, embedding_server
from tests.llama_process import free_port

NAME = "Olla, two llama-servers"
NO_LIMIT = 1_000_000


def olla(folder: Path, roots: dict[str, str], **limits: int) -> tuple[ProgramProcess, str]:
    """`roots` by name: the llama-servers behind it."""
    port = free_port()
    endpoints = [
        {
            "name": name,
            "url": root,
            "type": "llamacpp",
            "priority": 100,
            "check_interval": "2s",
            "check_timeout": "1s",
        }
        for name, root in roots.items()
    ]
    rates: dict[str, Any] = dict.fromkeys(
        ("global_requests_per_minute", "per_ip_requests_per_minute", "burst_size"), NO_LIMIT
    )
    config = {
        "server": {"host": "127.0.0.1", "port": port, "rate_limits": rates | limits},
        "proxy": {
            "engine": "olla",
            "load_balancer": "least-connections",
            "sticky_sessions": {"enabled": True, "key_sources": ["session_header"]},
        },
        "discovery": {
            "type": "static",
            "static": {"endpoints": endpoints},
            "model_discovery": {"enabled": True, "interval": "1m"},
        },
        "logging": {"level": "info", "format": "text", "output": "stdout"},
    }
    file = folder / "olla.yaml"
    file.write_text(json.dumps(config))
    process = ProgramProcess(
        [command("olla"), "--config", str(file)],
        ready_url=f"http://127.0.0.1:{port}/internal/health",
        folder=folder,
        name="olla",
        environment={"OLLA_CONFIG_FILE": str(file)},
    )
    return process, f"http://127.0.0.1:{port}"


@contextmanager
def _two_servers(folder: Path, models: ModelFiles) -> Iterator[Backend]:
    flags = ("-np", "2", "-c", "8192")
    one, one_root = chat_server(folder, models, *flags, name="one")
    two, two_root = chat_server(folder, models, *flags, name="two")
    embed, embed_root = embedding_server(folder, models)
    with one, two, embed:
        process, root = olla(folder, {"one": one_root, "two": two_root, "embed": embed_root})
        with process, Relay(int(root.rsplit(":", 1)[1])) as relay:
            yield Backend(
                NAME,
                "olla",
                f"{root}/olla/proxy/v1",
                embeddings="embed",
                stated={"parallel": 4},
                slots=4,
                forgotten=(f"{root}/v1", "This is Olla. Use its full address"),
                relay=relay,
                faults={
                    "unknown model": "it answers as if the servers were gone, under /olla/proxy"
                },
                serving=[ServingProcess(one_root), ServingProcess(two_root)],
                victim=process,
            )


STACKS = (Stack(NAME, ("olla", "llama-server"), _two_servers),)
