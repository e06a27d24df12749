"""Real MCP servers: one as a command, one behind streamable HTTP that wants a key."""

import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from django.contrib.auth.models import User
from django.test import Client

from apps.core import crypto
from apps.mcp import discovery, sessions
from apps.mcp.models import ToolServer, Transport
from tests.llama_process import free_port
from tests.waiting import wait_until

KETTLE = Path(__file__).parent / "kettle_server.py"
COMMAND = f"{sys.executable} -W ignore {KETTLE}"
KEY = "key-of-the-kettle"


def create_command(name: str = "Kettle", command: str = COMMAND, **fields: object) -> ToolServer:
    slug = name.lower()
    return ToolServer.objects.create(
        name=name, slug=slug, transport=Transport.STDIO, command=command, **fields
    )


async def known(server: ToolServer) -> ToolServer:
    """The server, asked for its tools."""
    server = await discovery.refresh_tools(server)
    assert server.error == ""
    return server


@pytest_asyncio.fixture(autouse=True)
async def _no_connection_is_left() -> AsyncIterator[None]:
    yield
    await sessions.close_all()


@pytest.fixture(scope="session")
def http_kettle() -> Iterator[str]:
    """The address of a server that wants KEY."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-W", "ignore", str(KETTLE), str(port), KEY])

    def listens() -> bool:
        assert process.poll() is None, "the server has ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return False
        return True

    wait_until(listens)
    yield f"http://127.0.0.1:{port}/mcp"
    process.terminate()
    process.wait()


@pytest.fixture
def http_server(db: None, http_kettle: str) -> ToolServer:
    return ToolServer.objects.create(
        name="Far kettle", slug="far", url=http_kettle, encrypted_key=crypto.encrypt(KEY)
    )


@pytest.fixture
def staff(carol: User) -> Client:
    client = Client()
    client.force_login(carol)
    return client
