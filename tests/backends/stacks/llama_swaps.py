"""llama-swap: one model at a time, with time to live, aliases and filters; a peer."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.backends.backend import Backend, ServingProcess
from tests.backends.model_files import ModelFiles
from tests.backends.process import ProgramProcess
from tests.backends.programs import command, version
from tests.backends.relay import Relay
from tests.backends.stacks import Stack
from tests.backends.stacks.llama_servers import COMMON, chat_server
from tests.llama_process import free_port

KEY = "sk-llama-swap"
GROUP = "llama-swap, one at a time"
PEER = "llama-swap with a peer"
PEER_KEY = "sk-peer"
TOO_OLD = "too old: no peers and no --version (before 2025); docs/backends.md names releases"


def is_old() -> bool:
    """True for the versions that only forward chat and name their models."""
    command("llama-swap")
    return not version("llama-swap")


def model(path: Path, *flags: str, **more: Any) -> dict[str, Any]:
    port = str(free_port()) if is_old() else "${PORT}"
    words = (command("llama-server"), "--port", port, *COMMON, "-m", str(path), *flags)
    # A port on 127.0.0.1: `localhost` may be an address on which nobody listens.
    return {"cmd": " ".join(words), "proxy": f"http://127.0.0.1:{port}", **more}


def swap_models(models: ModelFiles) -> dict[str, Any]:
    """Without groups and matrix, one of them is in memory at a time."""
    return {
        "alpha": model(
            models.path("alpha"),
            *("-np", "2", "-c", "8192"),
            ttl=300,
            aliases=["first"],
            filters={"setParams": {"seed": 7}},
        ),
        "beta": model(models.path("beta"), "-np", "2", "-c", "8192"),
        "broken": model(models.path("broken")),
        "embed": model(models.embeddings, "--embeddings", "-np", "2", "-c", "4096", "-ub", "2048"),
    }


def llama_swap(folder: Path, config: dict[str, Any]) -> tuple[ProgramProcess, str]:
    port = free_port()
    file = folder / "llama-swap.yaml"
    common = {"startPort": free_port(), "apiKeys": [KEY], "healthCheckTimeout": 30}
    file.write_text(json.dumps(common | config))  # YAML takes JSON as it is
    process = ProgramProcess(
        [command("llama-swap"), "--config", str(file), "--listen", f"127.0.0.1:{port}"],
        ready_url=f"http://127.0.0.1:{port}/v1/models",
        folder=folder,
        name="llama-swap",
    )
    return process, f"http://127.0.0.1:{port}"


@contextmanager
def _group(folder: Path, models: ModelFiles) -> Iterator[Backend]:
    old = is_old()
    process, root = llama_swap(folder, {"models": swap_models(models)})
    with process, Relay(int(root.rsplit(":", 1)[1])) as relay:
        backend = Backend(
            GROUP,
            "llama-swap",
            f"{root}/v1",
            other="beta",
            broken="broken",
            one_at_a_time=True,
            slots=2,
            relay=relay,
            victim=process,
        )
        if old:
            backend.stated = {"parallel": 2}
            # What it has no route for goes to the model that runs.
            backend.serving = [ServingProcess(root)]
        else:
            backend.api_key, backend.embeddings = KEY, "embed"
            backend.context, backend.unified = 4096, False
            backend.serving = [ServingProcess(root, KEY, "/upstream/alpha/slots")]
        yield backend


@contextmanager
def _peer(folder: Path, models: ModelFiles) -> Iterator[Backend]:
    if is_old():
        pytest.skip(TOO_OLD)
    far, far_root = chat_server(folder, models, "-np", "2", "-c", "8192", "--api-key", PEER_KEY)
    peer = {"proxy": far_root, "apiKey": PEER_KEY, "models": ["alpha"]}
    near = {"beta": model(models.path("beta"), "-np", "2", "-c", "8192")}
    process, root = llama_swap(folder, {"models": near, "peers": {"far": peer}})
    with far, process, Relay(int(root.rsplit(":", 1)[1])) as relay:
        yield Backend(
            PEER,
            "llama-swap",
            f"{root}/v1",
            KEY,
            other="beta",
            stated={"parallel": 2},
            slots=2,
            relay=relay,
            serving=[ServingProcess(far_root, PEER_KEY)],
            victim=far,
            gone_code="backend_gone",
        )


STACKS = (
    Stack(GROUP, ("llama-swap", "llama-server"), _group),
    Stack(PEER, ("llama-swap", "llama-server"), _peer),
)
