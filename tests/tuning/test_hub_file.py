"""The header of a model on Hugging Face, for which a server on this machine stands in."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from apps.tuning import hub_file
from apps.tuning.errors import PlanError
from apps.tuning.hub_file import HubFile, find_hub_file, read_hub_shape
from apps.tuning.model_file import read_model_file
from tests.tuning.planner.tiny_shapes import SHAPES, write_shape

FILE = HubFile("owner/repo", "tiny.gguf")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shape(tmp_path_factory.mktemp("models") / "tiny.gguf", SHAPES["GQA"])


@contextmanager
def hub(content: bytes, *, moved_to: str = "/storage", status: int = 206) -> Iterator[str]:
    """Redirects every file to its storage, which gives ranges of the content."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/storage":
                self.send_response(302)
                self.send_header("Location", moved_to)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            start, end = map(int, re.findall(r"\d+", self.headers["Range"]))
            piece = content[start : end + 1]
            self.send_response(status)
            whole = f"bytes {start}-{start + len(piece) - 1}/{len(content)}"
            self.send_header("Content-Range", whole)
            self.send_header("Content-Length", str(len(piece)))
            self.end_headers()
            self.wfile.write(piece)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


async def test_the_header_is_read_in_pieces_behind_a_redirect(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_file, "STEP_BYTES", 2048)
    with hub(model.read_bytes()) as root:
        shape = await read_hub_shape(FILE, hub=root, allow_private=True)
    assert shape == read_model_file(model)


@pytest.mark.parametrize(
    ("status", "said"),
    [(404, "no such file"), (403, "without a login"), (200, "status 200"), (503, "status 503")],
)
async def test_a_file_that_is_not_given_is_refused_with_the_reason(status: int, said: str) -> None:
    with hub(b"GGUF", status=status) as root, pytest.raises(PlanError, match=said):
        await read_hub_shape(FILE, hub=root, allow_private=True)


@pytest.mark.parametrize(
    ("place", "said"), [("/again", "too often"), ("https://127.0.0.1/", "redirects to https")]
)
async def test_redirects_without_end_or_to_another_scheme_are_refused(
    place: str, said: str
) -> None:
    with hub(b"GGUF", moved_to=place) as root, pytest.raises(PlanError, match=said):
        await read_hub_shape(FILE, hub=root, allow_private=True)


async def test_another_file_is_no_model_and_a_private_address_is_not_asked() -> None:
    with hub(b"PK" + bytes(100)) as root:
        with pytest.raises(PlanError, match="not a GGUF file"):
            await read_hub_shape(FILE, hub=root, allow_private=True)
        with pytest.raises(PlanError, match="private address"):
            await read_hub_shape(FILE, hub=root)


async def test_no_network_is_said() -> None:
    with pytest.raises(PlanError, match="Download it"):
        await read_hub_shape(FILE, hub="http://127.0.0.1:1", allow_private=True)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a/b:c.gguf", HubFile("a/b", "c.gguf")),
        ("Qwen/Qwen3-8B-GGUF:sub/Q4_K_M.gguf", HubFile("Qwen/Qwen3-8B-GGUF", "sub/Q4_K_M.gguf")),
        ("/models/c.gguf", None),
        ("a/b:../c.gguf", None),
        ("a/b:c.bin", None),
        ("a/b/c:d.gguf", None),
        ("a b/c:d.gguf", None),
    ],
)
def test_a_name_of_hugging_face_is_told_from_a_path(text: str, found: HubFile | None) -> None:
    assert find_hub_file(text) == found


def test_plan_reads_a_model_of_hugging_face(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[HubFile] = []

    async def read(file: HubFile) -> object:
        asked.append(file)
        if file.repo != "owner/repo":
            raise PlanError("Hugging Face has no such file.")
        return read_model_file(model)

    monkeypatch.setattr("apps.tuning.named_model.read_hub_shape", read)
    call_command("plan", "owner/repo:tiny.gguf", "--memory", "4")
    assert asked == [FILE]
    with pytest.raises(CommandError, match="no such file"):
        call_command("plan", "another/repo:tiny.gguf", "--memory", "4")
