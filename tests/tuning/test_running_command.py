"""The command line of a measured server."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.servers.models import Kind, Server
from apps.servers.services import Target
from apps.tuning.running_command import find_command, read_command
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
def test_command_is_found_without_keys(reply: Any, expected: str) -> None:
    assert find_command(reply, "m") == expected


@pytest.mark.parametrize(
    "word",
    [
        "--api-key 'a secret'",
        '--api-key "a \\" secret"',
        r"--api-key a\ secret",
        "--api-key 'cut off secret",
        "--api_key secret",
        "--openai-api-key  secret",
        "-hft secret",
        "--hf-token=secret",
        "LLAMA_API_KEY=secret",
        "HF_TOKEN='a secret'",
    ],
)
def test_no_way_to_write_a_key_is_shown(word: str) -> None:
    entry = {"model": "m", "cmd": f"{word} llama-server -np 2"}
    found = find_command({"running": [entry]}, "m")
    assert "secret" not in found
    assert "••••" in found


@given(st.text(alphabet="ab '\"\\=\n-$", min_size=1).map("sk{}".format))
def test_a_key_of_any_characters_is_hidden_and_the_rest_stays(key: str) -> None:
    args = ["llama-server", "--api-key", key, "-np", "4", "--api-key-file", "keys"]
    found = find_command({"data": [{"id": "m", "status": {"args": args}}]}, "m")
    assert found == "llama-server --api-key •••• -np 4 --api-key-file keys"


def test_command_is_bounded() -> None:
    assert len(find_command({"running": [{"model": "m", "cmd": "x" * 10_000}]}, "m")) == 4_000


@pytest.mark.usefixtures("loop_closed")
@pytest.mark.parametrize("kind", [Kind.LLAMA_SERVER, Kind.LLAMA_SWAP])
async def test_command_that_nobody_reports_is_empty(kind: Kind) -> None:
    server = Server(name="Away", base_url=f"http://127.0.0.1:{free_port()}/v1", kind=kind)
    assert await read_command(Target(server, "m")) == ""
