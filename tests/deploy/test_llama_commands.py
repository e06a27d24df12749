"""The llama.cpp command lines of docker-compose.yml and deploy/llama-swap.yaml.

Read by llama.cpp's own parser, and run on a tiny model: what a container would do but for the GPU.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import numpy as np
import pytest
import yaml

from tests.deploy import compose, llama_args
from tests.llama_process import free_port
from tests.tiny_gguf import write_tiny_gguf
from tests.waiting import wait_until

LLAMA_SWAP_FILE = compose.REPOSITORY / "deploy/llama-swap.yaml"
FROM_COMPOSE = ("llm-cpu", "embed-cpu", "embed-gpu")
FROM_LLAMA_SWAP = ("chat", "embed", "large")
ENV = compose.FILLED_IN | {"EMBED_API_KEY": "embed-key"}

# The flags we know the meaning of: ones that a llama.cpp of our time takes, none it has dropped.
KNOWN_FLAGS = {
    *("--host", "--port", "--model", "--alias", "--embeddings", "--metrics", "--cache-ram"),
    *("-np", "-c", "-b", "-ub", "-sps", "-ctk", "-ctv", "--kv-unified"),
}


def llama_swap_config(*, with_the_example: bool = False) -> dict[str, Any]:
    text = LLAMA_SWAP_FILE.read_text()
    if with_the_example:  # the second chat model, commented out
        text = re.sub(r"^  # (large:|  +\S.*)$", r"  \1", text, flags=re.MULTILINE)
    config = yaml.safe_load(text)
    assert isinstance(config, dict)
    return config


def llama_swap_command(model: str) -> list[str]:
    """With its macros replaced as llama-swap does it: a later one may use an earlier one."""
    config = llama_swap_config(with_the_example=True)
    env = compose.service("llm-gpu", ENV)["environment"]
    macros = {f"env.{name}": value for name, value in env.items()} | {"PORT": "5800"}

    def expand(text: str) -> str:
        return re.sub(r"\$\{([\w.-]+)\}", lambda found: macros[found[1]], text)

    for name, value in config["macros"].items():
        macros[name] = expand(value)
    return shlex.split(expand(config["models"][model]["cmd"]))


def arguments(name: str) -> list[str]:
    if name in FROM_COMPOSE:
        command = compose.service(name, ENV)["command"]
        assert isinstance(command, list)
        return command
    program, *rest = llama_swap_command(name)
    assert program == "/app/llama-server"
    return rest


def understood(argv: list[str], env: dict[str, str] | None = None) -> dict[str, Any]:
    try:
        return llama_args.understood(argv, env)
    except LookupError as error:
        pytest.skip(str(error))


# --- Flags -------------------------------------------------------------------


@pytest.mark.parametrize("name", [*FROM_COMPOSE, *FROM_LLAMA_SWAP])
def test_flags_are_known_ones(name: str) -> None:
    flags = {word for word in arguments(name) if re.match(r"--?[a-z]", word)}
    assert flags <= KNOWN_FLAGS


@pytest.mark.parametrize("refused", ["--mlock", "--n-ctx 1", "--port=8080", "-np four", "-fa"])
def test_the_parser_refuses_what_llama_server_would(refused: str) -> None:
    with pytest.raises(ValueError, match="error"):
        understood(shlex.split(refused))


@pytest.mark.parametrize("name", [*FROM_COMPOSE, *FROM_LLAMA_SWAP])
def test_llama_server_understands_its_command(name: str) -> None:
    params = understood(arguments(name))
    assert params["n_parallel"] > 1
    assert params["endpoint_metrics"] is True
    assert params["embedding"] is name.startswith("embed")
    share = params["n_ctx"] // params["n_parallel"]
    if params["embedding"]:
        # The longest text in all slots at once still fits into the pool.
        assert params["n_ubatch"] == params["n_batch"] == share == 2048
        assert params["kv_unified"] is True
    else:
        # A pool would fail every request when it overflows.
        assert params["kv_unified"] is False
        assert share >= 4096
        assert params["slot_prompt_similarity"] == pytest.approx(0.5)


@pytest.mark.parametrize("name", FROM_COMPOSE)
def test_a_container_listens_where_it_is_looked_for(name: str) -> None:
    params = understood(arguments(name))
    assert (params["hostnames"], params["port"]) == (["0.0.0.0"], 8080)
    assert "127.0.0.1:8080/health" in compose.service(name)["healthcheck"]["test"][-1]
    folder, target, mode = compose.service(name)["volumes"][0].split(":")
    assert (folder, target, mode) == ("./models", "/models", "ro")
    assert params["model"].startswith("/models/")


def test_each_server_asks_for_the_key_that_the_workbench_sends() -> None:
    app = compose.service("web", ENV)["environment"]
    for name, key in (("llm-cpu", "LLM"), ("embed-cpu", "EMBED"), ("embed-gpu", "EMBED")):
        env = compose.service(name, ENV)["environment"]
        assert understood(arguments(name), env)["api_keys"] == [app[f"{key}_API_KEY"]]
    only_one = compose.service("embed-cpu", compose.FILLED_IN)["environment"]
    assert only_one == {"LLAMA_API_KEY": compose.FILLED_IN["LLM_API_KEY"]}


# --- llama-swap --------------------------------------------------------------


@pytest.mark.parametrize("with_the_example", [False, True])
def test_llama_swap_config_has_the_documented_form(with_the_example: bool) -> None:
    """llama-swap ignores a key it does not know, so a misspelt one would go unnoticed."""
    config = llama_swap_config(with_the_example=with_the_example)
    assert set(config) == {"healthCheckTimeout", "apiKeys", "macros", "models", "routing"}
    assert len(config["models"]) == 2 + with_the_example
    for model in config["models"].values():
        assert set(model) <= {"name", "cmd", "metadata", "ttl"}
        assert model["ttl"] >= 0
    assert config["routing"]["router"]["use"] == "matrix"
    matrix = config["routing"]["router"]["settings"]["matrix"]
    assert set(matrix["vars"].values()) <= set(config["models"])
    for expression in matrix["sets"].values():
        assert set(re.findall(r"\w+", expression)) <= set(matrix["vars"])


def test_llama_swap_asks_for_the_key_that_the_workbench_sends() -> None:
    assert llama_swap_config()["apiKeys"] == ["${env.LLM_API_KEY}"]
    env = compose.service("llm-gpu", ENV)["environment"]
    assert env["LLM_API_KEY"] == compose.service("web", ENV)["environment"]["LLM_API_KEY"]


def test_llama_swap_finds_its_config() -> None:
    service = compose.service("llm-gpu")
    assert service["entrypoint"] == ["/app/llama-swap"]
    flags = dict(zip(service["command"][::2], service["command"][1::2], strict=True))
    assert flags == {"-config": "/app/config.yaml", "-listen": "0.0.0.0:8080"}
    assert any(volume.endswith(":/app/config.yaml:ro") for volume in service["volumes"])


@pytest.mark.parametrize("name", FROM_LLAMA_SWAP)
def test_documented_number_of_slots_is_that_of_the_command(name: str) -> None:
    told = llama_swap_config(with_the_example=True)["models"][name]["metadata"]["slots"]
    assert told == understood(arguments(name))["n_parallel"]


# --- Running -----------------------------------------------------------------


@contextmanager
def served(name: str, model: Path) -> Iterator[str]:
    """The service's command, but for the model and the address. Yields the URL."""
    argv = arguments(name)
    port = free_port()
    for flag, value in (("--model", str(model)), ("--host", "127.0.0.1"), ("--port", str(port))):
        argv[argv.index(flag) + 1] = value
    env = compose.service(name, ENV)["environment"] if name in FROM_COMPOSE else {}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.deploy.llama_args", *argv],
        cwd=compose.REPOSITORY,
        env={**os.environ, **env, "LLAMA_ARGS_SERVE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: process.poll() is not None or answers(port), within=120)
        assert process.poll() is None, "llama.cpp ended"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.communicate(timeout=60)  # the end of its input


def answers(port: int) -> bool:
    try:
        ask(f"http://127.0.0.1:{port}/health")
    except OSError:  # of an HTTP status too
        return False
    return True


def ask(url: str, key: str = "", body: dict[str, Any] | None = None) -> Any:
    request = urllib.request.Request(
        url,
        data=json.dumps(body).encode() if body is not None else None,
        headers={"Content-Type": "application/json"}
        | ({"Authorization": f"Bearer {key}"} if key else {}),
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


@pytest.mark.parametrize("name", ["llm-cpu", "chat"])
def test_the_command_serves_chat(name: str, tmp_path: Path) -> None:
    params = understood(arguments(name))  # skips where the parser cannot be called
    # llama-swap's children listen on loopback without a key: llama-swap asks for it.
    key = "llm-key" if name == "llm-cpu" else ""
    with served(name, write_tiny_gguf(tmp_path / "tiny.gguf")) as url:
        if key:
            with pytest.raises(HTTPError, match="401"):
                ask(f"{url}/props")
        props = ask(f"{url}/props", key)
        assert props["total_slots"] == 4
        assert props["default_generation_settings"]["n_ctx"] == params["n_ctx"] // 4
        body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}
        answer = ask(f"{url}/v1/chat/completions", key, body)
        assert answer["usage"]["completion_tokens"] > 0


@pytest.mark.parametrize("name", ["embed-cpu", "embed"])
def test_the_command_serves_embeddings(name: str, tmp_path: Path) -> None:
    understood(arguments(name))
    key = "embed-key" if name == "embed-cpu" else ""
    # About 1,600 tokens in the second: more than an unset -ub takes.
    texts = ["a short text", "words " * 200, "one of another length altogether"]
    with served(name, write_tiny_gguf(tmp_path / "tiny.gguf", embeddings=True)) as url:

        def embed(texts: list[str]) -> np.ndarray:
            answer = ask(f"{url}/v1/embeddings", key, {"input": texts, "model": "embed"})
            return np.array([item["embedding"] for item in answer["data"]])

        assert ask(f"{url}/props", key)["total_slots"] == 4
        alone = np.concatenate([embed([text]) for text in texts])
        assert (alone * embed(texts)).sum(axis=1) == pytest.approx(1, abs=1e-3)
