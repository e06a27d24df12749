"""Real programs on the gateway: SDKs and frameworks as they are installed from PyPI.

Their packages ask for other versions than ours, so they live in an environment of their own:
`python -m venv VENV; VENV/bin/pip install anthropic openai langchain-openai langchain-anthropic
instructor litellm`, and WORKBENCH_TEST_CLIENTS=VENV.
"""

import asyncio
import os
from pathlib import Path

import pytest

from apps.servers.models import Server
from apps.servers.services import refresh_server

CLIENTS = Path(__file__).parent / "clients"
VENV = os.environ.get("WORKBENCH_TEST_CLIENTS", "")
SECONDS = 60

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not VENV, reason="WORKBENCH_TEST_CLIENTS names no environment"),
    pytest.mark.timeout(2 * SECONDS),
]


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
