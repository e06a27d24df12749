"""A second process of our own llama.cpp, to measure another micro-batch."""

import asyncio
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from apps.embedded.options import from_settings
from apps.embedded.processes.trial_server import can_try, trial_server
from apps.llm.client import client_for
from apps.servers.models import Server
from apps.servers.services import Target, refresh_server
from apps.tuning.sweep.measuring import ubatches
from apps.tuning.sweep.services import Progress, sweep_server
from apps.tuning.sweep.tables import make_tables
from tests.llama_process import LlamaProcess
from tests.tuning.sweep.short import shorten

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("loop_closed")]


@pytest.fixture
def ours(server: Server, llama: LlamaProcess, settings: Settings) -> Iterator[Server]:
    """The chat server, as if Workbench had started it."""
    settings.LLM_BASE_URL, settings.LLM_API_KEY = server.base_url, llama.api_key
    settings.LLAMA_SERVER = "bundled"
    server.from_settings = True
    server.save()
    key_file = from_settings().llama_key_file
    key_file.parent.mkdir(parents=True, exist_ok=True)
    before = key_file.read_text() if key_file.exists() else ""
    key_file.write_text(llama.api_key)
    yield server
    key_file.write_text(before)


def test_only_the_server_that_workbench_started_has_trials(
    ours: Server, settings: Settings
) -> None:
    assert can_try(ours)
    settings.LLM_API_KEY = "the key of somebody else’s server"
    assert not can_try(ours)
    ours.from_settings = False
    assert not can_try(ours)


async def test_a_trial_answers_beside_the_server_and_ends(ours: Server) -> None:
    async with trial_server(ours, 128, 1024) as endpoint:
        assert endpoint is not None
        assert endpoint.base_url != ours.base_url
        props = await client_for(endpoint).get("/props")
        assert props["default_generation_settings"]["n_ctx"] == 1024
    ended = await trial_server_answers(endpoint.root)
    assert not ended


async def trial_server_answers(root: str) -> bool:
    host, _, port = root.removeprefix("http://").rpartition(":")
    try:
        _, writer = await asyncio.open_connection(host, int(port))
    except ConnectionRefusedError:
        return False
    writer.close()
    return True


async def test_a_sweep_compares_micro_batches(
    ours: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch)
    monkeypatch.setattr(ubatches, "UBATCHES", (64, 512))
    monkeypatch.setattr(ubatches, "PROMPT_TOKENS", 1024)
    server = await refresh_server(ours)
    done: list[str] = []

    async def follow(progress: Progress) -> None:
        done.append(progress.doing)

    results = await sweep_server(Target(server, server.model_ids[0]), 4, follow)
    assert [*results.ubatches] == [64, 512]
    assert all(rate > 0 for rate in results.ubatches.values())
    [table] = [table for table in make_tables(results) if table.title == "Micro-batch (-ub)"]
    assert [row[0] for row in table.rows] == ["64", "512"]
    assert done[-1] == "Prompt rate with a micro-batch of 512 tokens (-ub)"
