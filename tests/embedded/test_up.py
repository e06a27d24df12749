"""`manage.py up` as a person meets it: real processes, tiny models."""

import signal
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import httpx2
import numpy as np
import psutil
import pytest

from tests.llama_process import free_port
from tests.stack import ROOT, UP, Stack, clean_env
from tests.tiny_gguf import write_tiny_gguf
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    return {
        "WORKBENCH_CHAT_MODEL": str(write_tiny_gguf(folder / "chat.gguf")),
        "WORKBENCH_EMBED_MODEL": str(write_tiny_gguf(folder / "embed.gguf", embeddings=True)),
    }


@pytest.fixture(scope="module")
def stack(models: dict[str, str]) -> Iterator[Stack]:
    with Stack(models, has_tables=False) as stack:  # as the first start of all
        stack.wait_for_log("supervisor      chat-model is ready")
        yield stack


def status(url: str) -> int:
    with urllib.request.urlopen(url, timeout=60) as answer:
        code: int = answer.status
        return code


def the_only(stack: Stack, name: str) -> psutil.Process:
    """The process of that name which the supervisor started (a worker has children)."""
    (found,) = (p for p in stack.processes(name) if p.ppid() == stack.process.pid)
    return found


# --- It runs ---------------------------------------------------------------------------------


def test_up_prints_one_line(stack: Stack) -> None:
    lines = stack.said().splitlines()

    assert lines[0] == "Preparing the database…"
    assert lines[1] == f"Workbench is ready: {stack.login_url}"
    assert status(stack.login_url) == 200


def test_a_model_answers_only_with_the_key(stack: Stack) -> None:
    server = the_only(stack, "--parallel 4")
    base_url = server.environ()["LLM_BASE_URL"]
    key = server.environ()["LLM_API_KEY"]

    with_key = urllib.request.Request(
        f"{base_url}/models", headers={"Authorization": f"Bearer {key}"}
    )
    with urllib.request.urlopen(with_key, timeout=60) as answer:
        assert b'"chat"' in answer.read()
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{base_url}/props", timeout=60)


def test_every_chat_is_opened_while_a_job_writes(stack: Stack) -> None:
    """SQLite has one writer at a time: the others wait for it, and nobody is refused."""
    key = stack.manage("create_api_key", "twenty programs").split()[-1]
    recipe = {"prompt": "Write a text.", "params": {"max_tokens": 4}}

    def post(path: str, body: dict[str, object]) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {key}"}
        return httpx2.post(f"{stack.url}/api/v1/{path}", json=body, headers=headers, timeout=120)

    job = post("jobs", {"name": "Writer", "rows": 10_000, "recipe": recipe}).json()["id"]
    with ThreadPoolExecutor(20) as programs:
        opened = list(programs.map(lambda n: post("conversations", {"title": str(n)}), range(200)))
    assert [answer.text for answer in opened if answer.status_code != 201] == []
    assert len({answer.json()["id"] for answer in opened}) == 200
    assert post(f"jobs/{job}/cancel", {}).status_code in {200, 202}


def test_everything_is_private(stack: Stack) -> None:
    open_to_others = [
        path
        for path in [stack.data, *stack.data.rglob("*")]
        if stat.S_IMODE(path.stat().st_mode) & 0o077
    ]

    assert open_to_others == []


def test_no_secret_is_in_a_command_line(stack: Stack) -> None:
    secrets = [path.read_text() for path in (stack.data / "secrets").iterdir()]
    commands = [" ".join(process.cmdline()) for process in stack.processes()]

    assert len(secrets) >= 3
    assert not [command for command in commands for secret in secrets if secret in command]


def test_no_secret_is_in_the_log(stack: Stack) -> None:
    for path in (stack.data / "secrets").iterdir():
        assert path.read_text() not in stack.log(), path.name
    assert stack.login_url.split("/")[-2] not in stack.log()


def test_manage_command_uses_the_same_database(stack: Stack) -> None:
    assert stack.manage("login_link").startswith("http://127.0.0.1:")


def test_what_is_killed_is_started_again(stack: Stack) -> None:
    worker = the_only(stack, "celery -A workbench worker")
    web = the_only(stack, "uvicorn")
    worker.kill()
    web.kill()

    wait_until(lambda: "web ended unexpectedly (killed by SIGKILL); restarting in" in stack.said())
    wait_until(
        lambda: "worker ended unexpectedly (killed by SIGKILL); restarting in" in stack.said()
    )
    wait_until(lambda: answers(stack.url))


def answers(url: str) -> bool:
    try:
        return status(f"{url}/health") == 200
    except OSError:
        return False


def test_a_second_one_on_the_same_folder(stack: Stack) -> None:
    said = refusal({"WORKBENCH_DATA": str(stack.data)})

    assert said == (
        f"Workbench is already running with the data folder {stack.data}"
        f" (process {stack.process.pid})."
        " Stop it, or choose another folder with WORKBENCH_DATA."
    )


# --- It ends ---------------------------------------------------------------------------------


def test_nothing_survives_kill_9_and_the_next_start_prepares_nothing(
    stack: Stack, models: dict[str, str]
) -> None:
    """The last test of this stack: it ends here."""
    stack.wait_for_log("worker is ready")
    assert len(stack.processes()) > 5
    stack.process.kill()
    wait_until(lambda: not stack.processes())

    with Stack(models, data=stack.data) as again:  # ended with Ctrl-C: it asserts what follows
        assert answers(again.url)
        assert "Preparing" not in again.said()


# --- It runs all the same ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def odd_stack(models: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A model that is none, in a folder whose path is too long for a socket."""
    folder = tmp_path_factory.mktemp("odd")
    broken = folder / "broken.gguf"
    # A whole file of an architecture that there is not: what is cut off is refused before a start.
    writer = gguf.GGUFWriter(broken, "none-such")
    writer.add_tensor("t", np.zeros(1, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    env = {**models, "WORKBENCH_CHAT_MODEL": str(broken)}
    with Stack(env, data=folder / ("x" * 100) / "with space") as stack:
        yield stack


def test_a_model_that_llama_cpp_does_not_take(odd_stack: Stack) -> None:
    """The rest works, so it starts; what is wrong is said at the terminal, not only in the log."""
    wait_until(lambda: "chat-model ended unexpectedly (exit code 1)" in odd_stack.said())
    wait_until(lambda: 'Last log line: "' in odd_stack.said())


def test_a_folder_without_room_for_a_socket_path(odd_stack: Stack) -> None:
    odd_stack.wait_for_log("celery.apps.worker: workbench@")
    assert "redis://" in the_only(odd_stack, "uvicorn").environ()["REDIS_URL"]


def test_sigterm_ends_it_too(odd_stack: Stack) -> None:
    odd_stack.process.send_signal(signal.SIGTERM)
    assert odd_stack.process.wait(timeout=120) == 0


# --- It cannot start -------------------------------------------------------------------------


def refusal(env: dict[str, str], up: Sequence[str] = UP) -> str:
    """What it says instead of starting: one line, without a traceback."""
    ended = subprocess.run(
        [sys.executable, *up],
        cwd=ROOT,
        env=clean_env()
        | {"WORKBENCH_PORT": str(free_port()), "WORKBENCH_LLAMA_SERVER": "bundled"}
        | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert ended.returncode == 1, ended.stderr
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    return line


@pytest.mark.parametrize("up", [UP, ("manage.py", "up")])
def test_a_port_in_use(models: dict[str, str], tmp_path: Path, up: Sequence[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        env = {"WORKBENCH_DATA": str(tmp_path), "WORKBENCH_PORT": str(port)}
        said = refusal(models | env, up)

    assert said == (
        f"Port {port} is in use. Stop the other program,"
        f" or choose another port, e.g. WORKBENCH_PORT={port + 1}."
    )


@pytest.mark.parametrize(
    ("port", "sentence"),
    [
        ("99999", "WORKBENCH_PORT must be between 1 and 65535, not 99999."),
        ("many", "WORKBENCH_PORT must be a whole number, not 'many'."),
    ],
)
def test_a_port_that_is_none(tmp_path: Path, port: str, sentence: str) -> None:
    assert refusal({"WORKBENCH_DATA": str(tmp_path), "WORKBENCH_PORT": port}) == sentence


def test_an_unreadable_model(models: dict[str, str], tmp_path: Path) -> None:
    said = refusal(
        {**models, "WORKBENCH_DATA": str(tmp_path), "WORKBENCH_CHAT_MODEL": "/nowhere/model.gguf"}
    )

    assert said.startswith("The model file /nowhere/model.gguf (WORKBENCH_CHAT_MODEL) cannot be")


def test_a_data_folder_that_cannot_be(models: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = refusal({**models, "WORKBENCH_DATA": str(tmp_path / "file" / "data")})

    assert "is not writable" in said
    assert "WORKBENCH_DATA" in said


def test_a_redis_that_does_not_answer(models: dict[str, str], tmp_path: Path) -> None:
    env = {"WORKBENCH_DATA": str(tmp_path), "REDIS_URL": f"redis://127.0.0.1:{free_port()}/0"}

    assert refusal(models | env).startswith("Redis (REDIS_URL) is not responding: ")


def test_a_database_that_does_not_answer(models: dict[str, str], tmp_path: Path) -> None:
    url = f"postgres://me:s3cret@127.0.0.1:{free_port()}/workbench"
    said = refusal({**models, "WORKBENCH_DATA": str(tmp_path), "DATABASE_URL": url})

    assert said.startswith("Cannot connect to the database (DATABASE_URL): ")
    assert "s3cret" not in said
