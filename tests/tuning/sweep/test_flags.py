"""The command line of a measured server."""

from typing import Any

import pytest

from apps.servers.models import Kind, Server
from apps.servers.services import Target
from apps.tuning.sweep.flags import find_flags, read_flags
from tests.llama_process import free_port

ROUTER = {"data": [{"id": "other"}, {"id": "m", "status": {"args": ["llama-server", "-np", "4"]}}]}
SWAP = {"running": [{"model": "m", "cmd": "llama-server -np 2 --api-key abc -c 4096"}]}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (ROUTER, "llama-server -np 4"),
        (SWAP, "llama-server -np 2 --api-key •••• -c 4096"),
        ({"running": [{"model": "m", "cmd": "x --api-key=abc"}]}, "x --api-key=••••"),
        ({"running": [{"model": "other", "cmd": "x"}]}, ""),
        ({"data": [{"id": "m"}, 7]}, ""),
        ({"data": [7, {"id": "m", "status": "loaded"}]}, ""),
        ({"data": "none"}, ""),
        ([], ""),
        (None, ""),
    ],
)
def test_flags_are_found_without_keys(reply: Any, expected: str) -> None:
    assert find_flags(reply, "m") == expected


def test_flags_are_bounded() -> None:
    assert len(find_flags({"running": [{"model": "m", "cmd": "x" * 10_000}]}, "m")) == 4_000


@pytest.mark.usefixtures("loop_closed")
@pytest.mark.parametrize("kind", [Kind.LLAMA_SERVER, Kind.LLAMA_SWAP])
async def test_flags_that_nobody_reports_are_empty(kind: Kind) -> None:
    server = Server(name="Away", base_url=f"http://127.0.0.1:{free_port()}/v1", kind=kind)
    assert await read_flags(Target(server, "m")) == ""
