"""A router downloads a model into its cache, and deletes it, as the page asks it to."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from apps.llm import errors
from apps.servers.loading import download
from apps.servers.loading.load_model import Action, run_action
from apps.servers.loading.progress import progress_of
from apps.servers.models import Server
from apps.servers.probing.refresh import refresh_server
from tests.backends.downloads.hub import Hub
from tests.backends.process import ProgramProcess
from tests.backends.programs import command
from tests.backends.stacks.llama_servers import KEY
from tests.llama_process import free_port
from tests.tiny_gguf import write_tiny_gguf
from tests.waiting import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("loop_closed")]
REPOSITORY = "alice/tiny-GGUF"
MODEL = f"{REPOSITORY}:Q8_0"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub({REPOSITORY: write_tiny_gguf(tmp_path / "tiny-Q8_0.gguf")}) as hub:
        yield hub


@pytest.fixture
def server(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A router without any model, which downloads from our hub."""
    monkeypatch.setattr(download, "POLL_SECONDS", 0.05)
    (tmp_path / "models").mkdir()
    root = f"http://127.0.0.1:{free_port()}"
    process = ProgramProcess(
        [
            *(command("llama-server"), "--host", "127.0.0.1", "--port", root.rpartition(":")[2]),
            *("--models-dir", str(tmp_path / "models"), "--api-key", KEY, "-t", "1", "-c", "2048"),
        ],
        ready_url=f"{root}/health",
        folder=tmp_path,
        environment={"MODEL_ENDPOINT": hub.url, "LLAMA_CACHE": str(tmp_path / "cache")},
    )
    process.start()
    server = Server(name="Router", base_url=f"{root}/v1")
    server.set_key(KEY)
    server.save()
    yield server
    process.kill()


async def test_a_model_is_downloaded_with_progress_used_and_deleted(
    server: Server, hub: Hub
) -> None:
    server = await refresh_server(server)
    hub.flowing.clear()
    shares = progress_of(server, MODEL, Action.DOWNLOAD)
    async with asyncio.timeout(150):
        first = asyncio.ensure_future(anext(shares))
        work = asyncio.create_task(run_action(server, MODEL, Action.DOWNLOAD))
        assert 0 <= await first < 1
        hub.flowing.set()
        assert [share async for share in shares][-1] == 1
        await work
    server = await refresh_server(server)
    assert server.facts_of(MODEL).actions == ["load", "delete"]
    await run_action(server, MODEL, Action.WARM)
    assert server.facts_of(MODEL).state == "loaded"
    await run_action(server, MODEL, Action.UNLOAD)

    async def is_unloaded() -> bool:  # its process takes a moment to end
        await refresh_server(server, max_age=timedelta(0))
        return server.facts_of(MODEL).state == "unloaded"

    await until(is_unloaded, what="the end of the model's process")
    await run_action(server, MODEL, Action.DELETE)
    assert server.model(MODEL) is None


async def test_a_cancelled_download_stops_at_the_server(server: Server, hub: Hub) -> None:
    server = await refresh_server(server)
    hub.flowing.clear()
    shares = progress_of(server, MODEL, Action.DOWNLOAD)
    async with asyncio.timeout(150):
        first = asyncio.ensure_future(anext(shares))
        work = asyncio.create_task(run_action(server, MODEL, Action.DOWNLOAD))
        await first
        work.cancel()
        hub.flowing.set()
        with pytest.raises(asyncio.CancelledError):
            await work
        async for _ in shares:  # until the server says that it ended
            pass
    assert (await refresh_server(server)).model(MODEL) is None


async def test_a_repository_that_is_not_there_is_said_to_fail(server: Server) -> None:
    server = await refresh_server(server)
    with pytest.raises(errors.LoadFailed, match="alice/none-GGUF could not be downloaded"):
        await run_action(server, "alice/none-GGUF", Action.DOWNLOAD)
