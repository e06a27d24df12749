"""An embedded server whose model is still being downloaded, on the pages and in the API."""

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.chat.conversations.model_state import ModelState
from apps.runtime.download_progress import DownloadProgress, progress_file, write_progress
from apps.servers.models import Server, State
from apps.servers.probing.refresh import refresh_server
from apps.servers.services import Target
from tests.llama_process import free_port
from tests.markup import visible_text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("idle_slots")]

HALF = DownloadProgress(model="alice/models:m.gguf", done=1_204_000_000, total=2_800_000_000)
FAILED = DownloadProgress(model="chat", error="The repository alice/models has no file m.gguf.")
SENTENCE = "Downloading alice/models:m.gguf: 43% (1.2 of 2.8 GB)."


@pytest.fixture
def data(tmp_path: Path, settings: Any) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


@pytest.fixture
def embedded(data: Path) -> Server:
    """Registered by `make run`, with nobody at its port yet."""
    return Server.objects.create(
        name="Chat server", base_url=f"http://127.0.0.1:{free_port()}/v1", from_settings=True
    )


def tell(server: Server, data: Path, progress: DownloadProgress) -> None:
    port = int(server.base_url.removesuffix("/v1").rpartition(":")[2])
    write_progress(progress_file(data, port), progress)


def test_the_card_shows_the_progress(browser: Client, embedded: Server, data: Path) -> None:
    tell(embedded, data, HALF)
    shown = visible_text(browser.get("/servers/cards/").content.decode())

    assert SENTENCE in shown
    assert "Loading" in shown


def test_the_card_shows_why_a_download_failed(
    browser: Client, embedded: Server, data: Path
) -> None:
    tell(embedded, data, FAILED)
    shown = visible_text(browser.get("/servers/cards/").content.decode())

    assert "The repository alice/models has no file m.gguf." in shown
    assert "Offline" in shown


def test_the_first_page_says_why_a_download_failed(
    browser: Client, embedded: Server, data: Path
) -> None:
    tell(embedded, data, FAILED)
    embedded.defaults.create(use="chat")
    browser.get("/servers/cards/")

    shown = visible_text(browser.get("/chat/").content.decode())
    assert "offline The repository alice/models has no file m.gguf." in shown


async def test_the_chat_page_shows_the_progress(embedded: Server, data: Path) -> None:
    tell(embedded, data, HALF)
    state = ModelState(Target(await refresh_server(embedded), ""))

    assert state.label == "downloading… 43%"
    assert state.hint == f"{SENTENCE} Your message is sent when it is complete."
    assert state.poll_seconds == 2


async def test_the_end_of_the_download_is_seen(embedded: Server, data: Path) -> None:
    tell(embedded, data, HALF)
    assert (await refresh_server(embedded)).facts.downloaded == 0.43
    for path in (data / "downloads").iterdir():
        path.unlink()
    server = await refresh_server(embedded, max_age=timedelta(0))

    assert server.state == State.UNREACHABLE
    assert not server.facts.is_downloading
    assert "Downloading" not in server.facts.error


@pytest.mark.parametrize(("seconds_ago", "state"), [(1, State.LOADING), (61, State.UNREACHABLE)])
async def test_a_started_server_is_loading_for_a_minute_at_most(
    embedded: Server, data: Path, seconds_ago: float, state: State
) -> None:
    tell(embedded, data, DownloadProgress(model="m", started_at=time.time() - seconds_ago))
    server = await refresh_server(embedded)

    assert server.state == state
    assert server.facts.is_starting is (state == State.LOADING)
    assert (server.facts.error == "Starting m.") is (state == State.LOADING)


async def test_servers_that_people_added_are_not_ours(embedded: Server, data: Path) -> None:
    tell(embedded, data, HALF)
    embedded.from_settings = False

    assert "Downloading" not in (await refresh_server(embedded)).facts.error
