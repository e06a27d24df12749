"""The real server of llama.cpp in a process of its own: what it answers and how it ends."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.llama_process import REPOSITORY, LlamaProcess, free_port
from tests.tiny_gguf import write_tiny_gguf
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="module")
def llama(tiny: Path) -> Iterator[LlamaProcess]:
    with LlamaProcess(tiny, "--alias", "tiny", "--metrics") as process:
        yield process


def call(llama: LlamaProcess, path: str, body: object = None, key: str | None = None) -> Any:
    request = urllib.request.Request(
        llama.root_url + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {llama.api_key if key is None else key}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=120) as response:
        text = response.read().decode()
    return json.loads(text) if text.startswith(("{", "[")) else text


def chat_body(**extra: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 40} | extra


def test_server_answers_a_chat(llama: LlamaProcess) -> None:
    reply = call(llama, "/v1/chat/completions", chat_body(seed=1))
    choice = reply["choices"][0]
    assert choice["finish_reason"] == "length"
    assert len(choice["message"]["content"]) == 40
    assert choice["message"]["content"].isprintable()
    assert reply["usage"]["completion_tokens"] == 40
    assert reply["model"] == "tiny"


def test_server_obeys_a_json_schema(llama: LlamaProcess) -> None:
    schema = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "label": {"enum": ["spam", "ham"]}},
        "required": ["text", "label"],
        "additionalProperties": False,
    }
    response_format = {"type": "json_schema", "json_schema": {"name": "sample", "schema": schema}}
    body = chat_body(seed=1, max_tokens=300, response_format=response_format)
    choice = call(llama, "/v1/chat/completions", body)["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert json.loads(choice["message"]["content"])["label"] in {"spam", "ham"}


def test_slots_each_have_their_own_context(llama: LlamaProcess) -> None:
    props = call(llama, "/props")
    assert props["total_slots"] == 2
    assert props["default_generation_settings"]["n_ctx"] == 1024
    assert [slot["n_ctx"] for slot in call(llama, "/slots")] == [1024, 1024]


def test_metrics_are_on_when_asked_for(llama: LlamaProcess) -> None:
    assert "llamacpp:requests_processing" in call(llama, "/metrics")


def test_another_key_is_refused(llama: LlamaProcess) -> None:
    with pytest.raises(urllib.error.HTTPError) as refusal:
        call(llama, "/v1/chat/completions", chat_body(), key="wrong")
    refusal.value.close()
    assert refusal.value.code == 401


def test_embeddings_are_off_unless_asked_for(llama: LlamaProcess) -> None:
    with pytest.raises(urllib.error.HTTPError) as refusal:
        call(llama, "/v1/embeddings", {"input": ["a"]})
    refusal.value.close()
    assert refusal.value.code == 501


def test_server_embeds(tmp_path: Path) -> None:
    model = write_tiny_gguf(tmp_path / "tiny.gguf", embeddings=True)
    with LlamaProcess(model, embeddings=True) as llama:
        data = call(llama, "/v1/embeddings", {"input": ["a", "b", "a"]})["data"]
    vectors = [row["embedding"] for row in data]
    assert [row["index"] for row in data] == [0, 1, 2]
    assert vectors[0] == pytest.approx(vectors[2], abs=1e-5)
    assert vectors[0] != pytest.approx(vectors[1], abs=1e-2)
    assert sum(x * x for x in vectors[0]) == pytest.approx(1.0, abs=1e-4)


def test_server_restarts_on_the_same_port(tiny: Path) -> None:
    with LlamaProcess(tiny) as llama:
        address = llama.base_url
        llama.kill()
        assert not llama.is_healthy()
        llama.restart()
        assert llama.base_url == address
        assert llama.is_healthy()


def test_sigterm_ends_it_cleanly_while_it_generates(tiny: Path) -> None:
    with LlamaProcess(tiny, context_per_slot=8192) as llama:
        body = chat_body(max_tokens=8000, stream=True)
        request = urllib.request.Request(
            f"{llama.base_url}/chat/completions",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {llama.api_key}"},
        )
        with urllib.request.urlopen(request, timeout=120) as stream:
            stream.readline()
            assert llama.stop() == 0


def test_sigint_ends_it_cleanly(tiny: Path) -> None:
    with LlamaProcess(tiny) as llama:
        assert llama.process is not None
        llama.process.send_signal(signal.SIGINT)
        assert llama.process.wait(timeout=120) == 0


def test_server_ends_when_its_parent_is_killed(tiny: Path, tmp_path: Path) -> None:
    command = server_command(tmp_path, tiny)
    script = (
        "import subprocess, sys, time\n"
        "server = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)\n"
        "server.stdout.readline()  # it listens\n"
        "print(server.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, *command], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    wait_until(lambda: not is_running(pid))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def server_command(
    tmp_path: Path, model: Path, key: str = "test-key", port: int | None = None
) -> list[str]:
    key_file = tmp_path / "key"
    key_file.write_text(key)
    return [
        *(sys.executable, "-m", "apps.embedded.llama_server", "--model", str(model)),
        *("--port", str(port or free_port()), "--api-key-file", str(key_file)),
    ]


def refused(command: list[str]) -> str:
    """Start the server, expect it to give up with exit code 1, and return what it wrote."""
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=180)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    return result.stderr


def test_a_missing_model_is_one_sentence(tmp_path: Path) -> None:
    model = tmp_path / "none.gguf"
    expected = f"The model file {model} cannot be read: No such file or directory.\n"
    assert refused(server_command(tmp_path, model)) == expected


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    assert refused(server_command(tmp_path, tmp_path)).count("\n") == 1


def test_another_kind_of_file_is_one_sentence(tmp_path: Path) -> None:
    model = tmp_path / "model.safetensors"
    model.write_bytes(b"\x00" * 100)
    assert (
        refused(server_command(tmp_path, model)) == f"The model file {model} is not a GGUF file.\n"
    )


def test_half_a_model_is_explained_in_a_sentence(tiny: Path, tmp_path: Path) -> None:
    half = tmp_path / "half.gguf"
    half.write_bytes(tiny.read_bytes()[:200_000])
    assert f"The model file {half} is incomplete" in refused(server_command(tmp_path, half))


def test_an_empty_key_file_is_refused(tiny: Path, tmp_path: Path) -> None:
    sentence = f"The API key file {tmp_path / 'key'} is empty.\n"
    assert refused(server_command(tmp_path, tiny, key="\n")) == sentence


def test_a_taken_port_is_refused(llama: LlamaProcess, tiny: Path, tmp_path: Path) -> None:
    said = refused(server_command(tmp_path, tiny, port=llama.port))
    assert f"or listen on port {llama.port}" in said
