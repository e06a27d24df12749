"""Real programs on the gateway: SDKs and frameworks as they are installed from PyPI.

Their packages ask for other versions than ours, so they live in an environment of their own:
`python -m venv VENV; VENV/bin/pip install anthropic openai langchain-openai langchain-anthropic
instructor litellm`, and WORKBENCH_TEST_CLIENTS=VENV.
"""

import asyncio
import os
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from apps.core.models import ApiKey
from apps.servers.facts.server_facts import ServerFacts
from apps.servers.models import ModelFacts, Server, State
from apps.servers.services import refresh_server

CLIENTS = Path(__file__).parent / "clients"
VENV = os.environ.get("WORKBENCH_TEST_CLIENTS", "")
SECONDS = 60

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not VENV, reason="WORKBENCH_TEST_CLIENTS names no environment"),
    pytest.mark.usefixtures("no_counters"),
    pytest.mark.timeout(2 * SECONDS),
]


async def add_server_that_is_away() -> None:
    facts = ServerFacts(models=[ModelFacts("away", state="loaded")])
    await Server(
        name="Away",
        base_url="http://127.0.0.1:9/v1",
        state=State.READY,
        checked_at=timezone.now(),
        stored_facts=facts.to_json(),
    ).asave()


@pytest.mark.parametrize(
    "script", sorted(path.stem for path in CLIENTS.glob("*.py") if path.stem != "__init__")
)
async def test_program_works_as_with_a_model_server(
    script: str,
    root: str,
    token: str,
    server: Server,
    alice: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("apps.servers.retry.RESTART_SECONDS", 0.0)
    await add_server_that_is_away()
    _, limited = await sync_to_async(ApiKey.issue)(user=alice, name="limited")
    await ApiKey.objects.filter(name="limited").aupdate(requests_per_minute=2, max_tokens=8)
    model = (await refresh_server(server)).model_ids[0]
    process = await asyncio.create_subprocess_exec(
        Path(VENV) / "bin" / "python",
        CLIENTS / f"{script}.py",
        env={
            **{"ROOT": root, "KEY": token, "LIMITED": limited, "MODEL": model},
            "PATH": os.environ["PATH"],
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(SECONDS):
        said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()[-3000:]
