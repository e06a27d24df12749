"""`manage.py up` with a model that has to be downloaded: the pages do not wait for it."""

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.embedded.hub import Hub
from tests.stack import Stack
from tests.tiny_gguf import write_tiny_gguf
from tests.waiting import wait_until

MODEL = "alice/models:tiny.gguf"


class Server:
    """The chat server of a stack, as the API reports it."""

    def __init__(self, stack: Stack) -> None:
        self._url = f"{stack.url}/api/v1/servers/1/probe"
        self._key = stack.manage("create_api_key", "test").split()[-1]

    def read(self) -> Mapping[str, Any]:
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        request = urllib.request.Request(self._url, data=b"{}", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: Mapping[str, Any] = json.load(answer)
            return found


def test_the_start_does_not_wait_for_a_download_and_a_killed_one_is_resumed(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    # Larger than what the library reads at once; llama.cpp does not mind what follows.
    tiny = write_tiny_gguf(tmp_path / "tiny.gguf").read_bytes() + bytes(40_000_000)
    with Hub({"tiny.gguf": tiny}) as hub:
        settings = {
            "HF_ENDPOINT": hub.url,
            "WORKBENCH_CHAT_MODEL": MODEL,
            "WORKBENCH_EMBED_MODEL": str(write_tiny_gguf(tmp_path / "e.gguf", embeddings=True)),
        }
        hub.flowing.clear()
        with Stack(settings, data=data) as stack:
            assert f"Downloading {MODEL}. The Servers page shows the progress." in stack.said()
            server = Server(stack)
            wait_until(lambda: server.read()["error"].startswith(f"Downloading {MODEL}: 25% ("))
            assert server.read()["state"] == "loading"
            (part,) = data.rglob(".*.part")
            wait_until(lambda: part.stat().st_size > 0)
            size = part.stat().st_size
            (process,) = stack.processes("fetch_and_serve")
            process.kill()
            hub.flowing.set()

            stack.wait_for_log("chat-model is ready")
            wait_until(lambda: server.read()["state"] == "ready")
            assert [model["id"] for model in server.read()["models"]] == ["tiny"]
            assert "chat-model ended unexpectedly (killed by SIGKILL)" in stack.said()
        assert hub.ranges == ["", f"bytes={size}-"]
