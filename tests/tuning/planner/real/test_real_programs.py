"""What a plan writes is started and loaded by the real programs."""

import json
import re
import subprocess
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apps.tuning.planner import outputs
from apps.tuning.planner.flags import Files, flags_of
from apps.tuning.planner.hardware import find_hardware
from apps.tuning.planner.outputs import PlannedServer
from apps.tuning.planner.uses import Use
from tests.backends.process import ProgramProcess
from tests.backends.programs import command
from tests.backends.stacks.llama_swaps import is_old
from tests.llama_process import free_port
from tests.tiny_gguf import write_tiny_gguf, write_tiny_projector
from tests.tuning.planner.plans import plan_of, server_of, shape_of_file
from tests.tuning.planner.test_memory import LLAMA
from tests.tuning.planner.tiny_shapes import SHAPES, write_shape

GPU = find_hardware("RTX 4090")
NASTY = 'it\'s a $HOME "model" # 1: é.gguf'
WITHOUT_COMMENT = NASTY.replace("#", "")


QUESTION = {"role": "user", "content": "Hi"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_tiny_gguf(folder / "embed.gguf", embeddings=True)
    write_tiny_projector(folder / "mmproj.gguf")
    (folder / "keys").write_text("sk-planned\n")
    for name in ("chat.gguf", "draft.gguf", NASTY, WITHOUT_COMMENT):
        write_tiny_gguf(folder / name)
    write_shape(folder / "heads-of-32.gguf", SHAPES["GQA"])
    return folder


def planned(model: Path, use: Use = Use.CHAT, **given: Any) -> PlannedServer:
    port, files = given.pop("port", 8080), given.pop("files", {})
    plan = plan_of(shape_of_file(model), use, **{"slots": 2, "context": 512} | given)
    return server_of(plan, Files(str(model), **files), port=port)


def get(address: str, key: str = "", *, body: Any = None) -> Any:
    """Get what the address answers; post it the body if there is one."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data=data, headers=headers)
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.load(response)


def shell(server: PlannedServer, folder: Path) -> ProgramProcess:
    """The command as a person pastes it into a shell."""
    text = outputs.command(server, program=command("llama-server"))
    return ProgramProcess(
        ["sh", "-c", f"exec {text}"],
        ready_url=f"http://127.0.0.1:{server.port}/health",
        folder=folder,
        environment={"LLAMA_ARG_OFFLINE": "1", "LLAMA_ARG_THREADS": "1"},
    )


def test_every_flag_stands_in_the_help_of_the_installed_build() -> None:
    known = subprocess.run(
        [command("llama-server"), "--help"], capture_output=True, text=True, check=True
    ).stdout
    names = set(re.findall(r"(?<![\w-])--[\w-]+", known))
    files = Files("a", "b", "c", "d")
    for use in Use:
        for hardware in (GPU, find_hardware("CPU, DDR5, two channels")):
            plan = plan_of(LLAMA, use, hardware=hardware, cache_type="q8_0")
            assert {flag.name for flag in flags_of(plan, files)} <= names


@pytest.mark.parametrize("use", Use)
def test_the_command_starts_a_server_with_the_planned_slots(
    use: Use, models: Path, tmp_path: Path
) -> None:
    model = models / ("embed.gguf" if use is Use.EMBEDDINGS else NASTY)
    server = planned(model, use, port=free_port())
    with shell(server, tmp_path):
        slots = get(f"http://127.0.0.1:{server.port}/slots")
        assert len(slots) == server.slots
        assert slots[0]["n_ctx"] == 512 * (2 if use is Use.AGENTS else 1)


def test_the_command_starts_with_every_optional_file_and_a_quantised_cache(
    models: Path, tmp_path: Path
) -> None:
    extra = {"projector": str(models / "mmproj.gguf"), "keys": str(models / "keys")}
    seeing = planned(models / "chat.gguf", files=extra, port=free_port())
    with shell(seeing, tmp_path):
        found = get(f"http://127.0.0.1:{seeing.port}/v1/models", key="sk-planned")
        assert found["data"][0]["id"] == "chat"
        assert (
            "vision" in get(f"http://127.0.0.1:{seeing.port}/props", key="sk-planned")["modalities"]
        )
    drafted = planned(
        models / "heads-of-32.gguf",
        files={"draft": str(models / "draft.gguf")},
        cache_type="q8_0",
        port=free_port(),
    )
    with shell(drafted, tmp_path):
        assert len(get(f"http://127.0.0.1:{drafted.port}/slots")) == 2


def test_llama_swap_loads_its_configuration_and_starts_a_model(
    models: Path, tmp_path: Path
) -> None:
    chat, embeddings = planned(models / NASTY), planned(models / "embed.gguf", Use.EMBEDDINGS)
    servers = [replace(chat, aliases=("first",)), embeddings]
    text = outputs.llama_swap(servers, program=command("llama-server"), all_fit=True)
    if is_old():  # it does not choose ports itself
        text = text.replace("${PORT}", str(free_port()))
    config, port = tmp_path / "config.yaml", free_port()
    config.write_text(f"startPort: {free_port()}\n{text}")
    root = f"http://127.0.0.1:{port}"
    with ProgramProcess(
        [command("llama-swap"), "--config", str(config), "--listen", f"127.0.0.1:{port}"],
        ready_url=f"{root}/v1/models",
        folder=tmp_path,
        environment={"LLAMA_ARG_OFFLINE": "1", "LLAMA_ARG_THREADS": "1"},
    ):
        found = {model["id"] for model in get(f"{root}/v1/models")["data"]}
        assert found == {server.name for server in servers}
        question = {"model": "first", "max_tokens": 1, "messages": [QUESTION]}
        assert get(f"{root}/v1/chat/completions", body=question)["choices"]


def test_the_router_loads_its_presets(models: Path, tmp_path: Path) -> None:
    servers = [planned(models / WITHOUT_COMMENT), planned(models / "embed.gguf", Use.EMBEDDINGS)]
    presets, port = tmp_path / "presets.ini", free_port()
    presets.write_text(outputs.router_presets(servers))
    words = [command("llama-server"), "--models-preset", str(presets), "--offline"]
    root = f"http://127.0.0.1:{port}"
    with ProgramProcess(
        [*words, "--host", "127.0.0.1", "--port", str(port)],
        ready_url=f"{root}/health",
        folder=tmp_path,
    ):
        by_name = {model["id"]: model for model in get(f"{root}/models")["data"]}
        for server in servers:
            preset = by_name[server.name]["status"]["preset"]
            assert "parallel = 2" in preset
            assert "ctx-size = 1024" in preset
        assert len(get(f"{root}/slots?model={servers[0].name}&autoload=true")) == 2


def test_litellm_loads_its_configuration_and_asks_the_planned_server(
    models: Path, tmp_path: Path
) -> None:
    program, port, key = command("litellm"), free_port(), "sk-" + "x7Kq9" * 6
    server = planned(models / "chat.gguf", port=free_port())
    (tmp_path / "litellm.yaml").write_text(outputs.litellm([server]))
    words = [program, "--config", "litellm.yaml", "--host", "127.0.0.1", "--port", str(port)]
    root = f"http://127.0.0.1:{port}"
    with (
        shell(server, tmp_path),
        ProgramProcess(
            words,
            ready_url=f"{root}/health/liveliness",
            folder=tmp_path,
            environment={
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "LITELLM_MASTER_KEY": key,
                "LLAMA_API_KEY": "none",
                "NO_PROXY": "127.0.0.1",
            },
        ),
    ):
        assert [model["id"] for model in get(f"{root}/v1/models", key)["data"]] == ["chat"]
        question = {"model": "chat", "max_tokens": 1, "messages": [QUESTION]}
        assert get(f"{root}/v1/chat/completions", key, body=question)["choices"]


def test_olla_loads_its_configuration(tmp_path: Path) -> None:
    server = server_of(plan_of(LLAMA), Files("/models/llama.gguf"))
    port = free_port()
    text = outputs.olla([server]).replace("40114", str(port))
    (tmp_path / "olla.yaml").write_text(text)
    with ProgramProcess(
        [command("olla"), "--config", "olla.yaml"],
        ready_url=f"http://127.0.0.1:{port}/internal/health",
        folder=tmp_path,
        environment={"OLLA_CONFIG_FILE": "olla.yaml"},
    ):
        endpoints = get(f"http://127.0.0.1:{port}/internal/status/endpoints")["endpoints"]
        assert [endpoint["name"] for endpoint in endpoints] == ["llama"]
