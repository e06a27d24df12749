"""Where the GPUs of a server's machine are looked for."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from apps.monitoring.gpus import nvml
from apps.monitoring.gpus.read import is_local, read_gpus
from apps.monitoring.gpus.reading import GpuReading
from apps.servers.models import Kind, Server
from tests.monitoring.gpus.test_llama_swap import stat

OURS = GpuReading(memory_used=1, memory_total=2)
asked: list[str] = []


class LlamaSwap(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        asked.append(self.path)
        body = json.dumps({"enabled": True, "gpu_stats": [stat(0)]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def llama_swap() -> Iterator[str]:
    asked.clear()
    with HTTPServer(("127.0.0.1", 0), LlamaSwap) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@pytest.fixture(autouse=True)
def local_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "read", lambda: [OURS])


@pytest.mark.usefixtures("loop_closed")
async def test_llama_swap_is_asked_for_its_last_minutes(llama_swap: str) -> None:
    server = Server(name="Swap", base_url=llama_swap, kind=Kind.LLAMA_SWAP)
    [reading] = await read_gpus(server)
    assert reading.memory_used == 12_000
    [path] = asked
    assert urlsplit(path).path == "/api/performance"
    assert "+00:00" in parse_qs(urlsplit(path).query)["after"][0]


async def test_a_local_server_has_the_gpus_of_this_machine() -> None:
    assert await read_gpus(Server(name="Here", base_url="http://127.0.0.1:9/v1")) == [OURS]


async def test_gpus_of_another_machine_are_not_reported() -> None:
    assert await read_gpus(Server(name="Away", base_url="http://192.0.2.1:9/v1")) == []


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:8080/v1", True),
        ("http://127.0.0.1:8080/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://192.168.0.5:8080/v1", False),
        ("http://gpu.example/v1", False),
        ("http://localhost.example/v1", False),
    ],
)
def test_local_addresses(url: str, expected: bool) -> None:
    assert is_local(url) is expected
