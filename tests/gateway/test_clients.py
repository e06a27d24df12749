"""Real programs on the gateway: SDKs and frameworks as they are installed from PyPI.

Their packages ask for other versions than ours, so they live in an environment of their own:
`python -m venv VENV; VENV/bin/pip install anthropic openai langchain-openai langchain-anthropic
instructor litellm`, and WORKBENCH_TEST_CLIENTS=VENV.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvicorn

from apps.gateway.application import Gateway
from apps.servers.models import Server
from apps.servers.services import refresh_server
from tests.waiting import until

CLIENTS = Path(__file__).parent / "clients"
VENV = os.environ.get("WORKBENCH_TEST_CLIENTS", "")
SECONDS = 60

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not VENV, reason="WORKBENCH_TEST_CLIENTS names no environment"),
    pytest.mark.timeout(2 * SECONDS),
]


@pytest.fixture
async def root(gateway: Gateway, server: Server, loop_closed: None) -> AsyncIterator[str]:
    """The address of the gateway, served in this loop."""
    served = uvicorn.Server(
        uvicorn.Config(gateway, port=0, lifespan="off", log_level="warning", loop="asyncio")
    )
    serving = asyncio.create_task(served.serve())

    async def has_started() -> bool:
        return served.started

    await until(has_started)
    port = served.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    served.should_exit = True
    await serving


@pytest.mark.parametrize(
    "script", sorted(path.stem for path in CLIENTS.glob("*.py") if path.stem != "__init__")
)
async def test_program_works_as_with_a_model_server(
    script: str, root: str, token: str, server: Server
) -> None:
    model = (await refresh_server(server)).model_ids[0]
    process = await asyncio.create_subprocess_exec(
        Path(VENV) / "bin" / "python",
        CLIENTS / f"{script}.py",
        env={"ROOT": root, "KEY": token, "MODEL": model, "PATH": os.environ["PATH"]},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(SECONDS):
        said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()[-3000:]
