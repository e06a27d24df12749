"""Downloads from Hugging Face, which is a small server of our own."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from apps.embedded.errors import StartError
from apps.embedded.model_files import find
from apps.runtime.download_progress import DownloadProgress
from tests.embedded.hub import Hub
from tests.llama_process import REPOSITORY, free_port
from tests.waiting import wait_until

GGUF = b"GGUF" + b"\0" * 100
# Larger than what the library reads at once.
LARGE = b"GGUF" + bytes(40_000_000)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with Hub({"good.gguf": GGUF, "q/large.gguf": LARGE, "page.gguf": b"<html>"}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


def chat_model(chosen: str, folder: Path, told: list[DownloadProgress] | None = None) -> Path:
    told = [] if told is None else told
    return find.chat_model(chosen, root=folder, folder=folder, tell=told.append).path


def refusal(chosen: str, folder: Path) -> str:
    with pytest.raises(StartError) as raised:
        chat_model(chosen, folder)
    return str(raised.value)


def partial_files(folder: Path) -> list[Path]:
    return list(folder.rglob(".*.part"))


def test_model_on_the_hub_is_downloaded_once(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[DownloadProgress] = []
    path = chat_model("alice/models:good.gguf", tmp_path, told)
    assert path.read_bytes() == GGUF
    assert path == tmp_path / "alice--models" / "good.gguf"
    begin = DownloadProgress(model="alice/models:good.gguf", done=0, total=len(GGUF))
    assert told == [begin, replace(begin, done=len(GGUF))]

    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    assert chat_model("alice/models:good.gguf", tmp_path, told) == path
    assert len(told) == 2


def begin_and_kill(hub: Hub, folder: Path) -> None:
    """Kill a download of the large file in the middle."""
    script = (
        "import sys; from pathlib import Path; from apps.embedded.model_files import find;"
        "find.chat_model('alice/models:q/large.gguf', root=Path(), folder=Path(sys.argv[1]),"
        " tell=lambda progress: None)"
    )
    hub.flowing.clear()
    process = subprocess.Popen([sys.executable, "-c", script, str(folder)], cwd=REPOSITORY)
    wait_until(lambda: any(path.stat().st_size for path in partial_files(folder)))
    process.send_signal(signal.SIGKILL)
    process.wait()
    hub.flowing.set()


def test_a_killed_download_is_resumed(hub: Hub, tmp_path: Path) -> None:
    begin_and_kill(hub, tmp_path)
    (partial,) = partial_files(tmp_path)
    have = partial.stat().st_size
    told: list[DownloadProgress] = []

    path = chat_model("alice/models:q/large.gguf", tmp_path, told)

    assert path.read_bytes() == LARGE
    assert hub.ranges == ["", f"bytes={have}-"]
    assert told[0].done == have > 0
    assert partial_files(tmp_path) == []


def test_a_part_of_another_version_is_not_used(hub: Hub, tmp_path: Path) -> None:
    begin_and_kill(hub, tmp_path)
    hub.version = "2"

    path = chat_model("alice/models:q/large.gguf", tmp_path)

    assert path.read_bytes() == LARGE
    assert hub.ranges == ["", ""]
    assert partial_files(tmp_path) == []


def test_a_connection_that_breaks_is_taken_up_again(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    hub.breaks = 1

    assert chat_model("alice/models:q/large.gguf", tmp_path).read_bytes() == LARGE
    assert len(hub.ranges) == 2
    assert hub.ranges[1].startswith("bytes=")


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ("alice/models:other.gguf", "The repository alice/models has no file other.gguf."),
        ("bob/models:m.gguf", "Repository bob/models not found on Hugging Face. If it is private"),
        ("gated/models:m.gguf", "gated/models is gated. Accept its terms on Hugging Face"),
        ("alice/models:huge.gguf", "Not enough space in"),
        ("broken/models:m.gguf", "Hugging Face answered with status 418 for broken/models:m.gguf."),
        ("alice/models:page.gguf", "is not a GGUF file."),
    ],
)
def test_failed_download_says_why(tmp_path: Path, chosen: str, sentence: str) -> None:
    said = refusal(chosen, tmp_path)

    assert sentence in said
    assert "WORKBENCH_CHAT_MODEL" in said
    assert "\n" not in said


def test_a_folder_that_cannot_be_written_to(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "models").touch()

    assert "could not be downloaded" in refusal("alice/models:good.gguf", tmp_path / "models")


def test_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free_port()}")

    said = refusal("alice/models:good.gguf", tmp_path)

    assert "alice/models:good.gguf could not be downloaded" in said
    assert said.endswith("Connect to the internet for the first start, or set a local GGUF file.")
    assert "\n" not in said
