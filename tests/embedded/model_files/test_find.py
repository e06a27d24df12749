"""Which file a setting means; Hugging Face is a small server of our own."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from apps.embedded.errors import StartError
from apps.embedded.model_files import embedding_model, find
from apps.embedded.processes.ports import free_port

GGUF = b"GGUF" + b"\0" * 100
TERABYTES = 10**15


class Hub(BaseHTTPRequestHandler):
    """What huggingface.co says about each of these repositories."""

    def do_GET(self) -> None:
        self.answer()

    def do_HEAD(self) -> None:
        self.answer()

    def answer(self) -> None:
        owner = self.path.split("/")[1]
        if owner == "bob":
            return self.refuse(401, "RepoNotFound")
        if owner == "gated":
            return self.refuse(403, "GatedRepo")
        if owner == "broken":
            return self.refuse(418, "")
        if not self.path.startswith("/alice/models/resolve/main/"):
            return self.refuse(404, "RepoNotFound")
        return self.send(self.path.rsplit("/", 1)[1])

    def send(self, name: str) -> None:
        bodies = {"good.gguf": GGUF, "page.gguf": b"<html>"}
        if name not in {*bodies, "huge.gguf"}:
            return self.refuse(404, "EntryNotFound")
        self.send_response(200)
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("ETag", f'"{name}"')
        self.send_header("Content-Length", str(len(bodies.get(name, b"")) or TERABYTES))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(bodies[name])

    def refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield
    server.shutdown()
    thread.join()
    server.server_close()


def chat_model(chosen: str, folder: Path, said: list[str] | None = None) -> find.ModelFile:
    said = [] if said is None else said
    return find.chat_model(chosen, root=folder, folder=folder / "models", report=said.append)


def refusal(chosen: str, folder: Path) -> str:
    with pytest.raises(StartError) as raised:
        chat_model(chosen, folder)
    return str(raised.value)


def write(path: Path, content: bytes = GGUF) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_without_a_choice_the_demo_model(tmp_path: Path) -> None:
    demo = write(tmp_path / "demo" / "workbench-demo.gguf")

    assert chat_model("", tmp_path) == find.ModelFile(path=demo, context_per_slot=2048)


def test_a_file_of_their_own(tmp_path: Path) -> None:
    own = write(tmp_path / "own.gguf")

    assert chat_model(str(own), tmp_path) == find.ModelFile(path=own, context_per_slot=4096)


def test_a_file_in_their_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    own = write(tmp_path / "own.gguf")

    assert chat_model("~/own.gguf", tmp_path).path == own


def test_no_such_file(tmp_path: Path) -> None:
    assert refusal("/nowhere/m.gguf", tmp_path) == (
        "The model file /nowhere/m.gguf (WORKBENCH_CHAT_MODEL) cannot be read:"
        " No such file or directory."
    )


def test_a_folder(tmp_path: Path) -> None:
    assert "cannot be read: Is a directory." in refusal(str(tmp_path), tmp_path)


def test_not_a_gguf_file(tmp_path: Path) -> None:
    page = write(tmp_path / "page.gguf", b"<html>")

    assert refusal(str(page), tmp_path).endswith("is not a GGUF file.")


def test_the_embedding_model_is_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_model, "prepare", lambda folder, report: folder / "made.gguf")

    found = find.embed_model("", folder=tmp_path, report=lambda line: None)

    assert found.path == tmp_path / "made.gguf"


def test_an_embedding_model_of_their_own(tmp_path: Path) -> None:
    own = write(tmp_path / "own.gguf")

    found = find.embed_model(str(own), folder=tmp_path, report=lambda line: None)

    assert found.path == own


@pytest.mark.usefixtures("hub")
def test_model_on_the_hub_is_downloaded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    path = chat_model("alice/models:good.gguf", tmp_path, said).path
    assert path.read_bytes() == GGUF
    assert path.is_relative_to(tmp_path / "models")
    assert said == ["Downloading alice/models:good.gguf from Hugging Face (first start only)…"]

    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    assert chat_model("alice/models:good.gguf", tmp_path, said).path == path
    assert len(said) == 1


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
def test_failed_download_is_one_sentence(tmp_path: Path, chosen: str, sentence: str) -> None:
    said = refusal(chosen, tmp_path)

    assert sentence in said
    assert "WORKBENCH_CHAT_MODEL" in said
    assert "\n" not in said


def test_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free_port()}")

    said = refusal("alice/models:good.gguf", tmp_path)

    assert "alice/models:good.gguf could not be downloaded" in said
    assert said.endswith("Connect to the internet for the first start, or set a local GGUF file.")
    assert "\n" not in said
