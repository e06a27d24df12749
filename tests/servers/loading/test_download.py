"""Downloading models into a router's cache, and deleting them from it, as durable tasks."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync

from apps.llm import errors
from apps.llm.client import close_clients
from apps.runtime.redis import close_async_redis
from apps.servers.loading import download, run_action
from apps.servers.loading.activities import model_activities, start_action
from apps.servers.loading.load_model import Action, check_action
from apps.servers.models import Kind, Server
from apps.servers.pages.fact_rows import model_rows
from apps.servers.probing.refresh import refresh_server
from apps.work import services as work
from apps.work.models import Task, TaskState
from apps.work.tasks import run_task
from tests.llama_process import LlamaProcess
from tests.servers.conftest import server_at
from tests.standins import Model, Standin

pytestmark = pytest.mark.django_db(transaction=True)
MODEL = "alice/tiny-GGUF:Q8_0"


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(run_action, "CHECK_SECONDS", 0.02)
    monkeypatch.setattr(run_task, "delay", lambda pk: None)


@pytest.fixture
def router(llama: LlamaProcess) -> Iterator[Standin]:
    with Standin("router", llama, models=[Model("a", loaded=True)]) as started:
        yield started


@pytest.fixture
def server(router: Standin) -> Server:
    return server_at(router, kind=Kind.ROUTER)


def refreshed(server: Server) -> Server:
    async def refresh() -> Server:
        try:
            return await refresh_server(server, max_age=timedelta(0))
        finally:
            await close_clients()
            await close_async_redis()

    return async_to_sync(refresh)()


def done(server: Server, model: str, action: Action) -> Task:
    """The task of an action after a worker has run it."""
    start_action(server, model, action)
    task = Task.objects.get(subject=f"{server.pk}:{action}:{model}")
    work.run(task.pk)
    task.refresh_from_db()
    return task


def test_a_model_is_downloaded_and_deleted(server: Server) -> None:
    assert done(server, MODEL, Action.DOWNLOAD).state == TaskState.DONE
    server = refreshed(server)
    assert server.facts_of(MODEL).actions == ["load", "delete"]
    assert done(server, MODEL, Action.DELETE).state == TaskState.DONE
    assert refreshed(server).model(MODEL) is None


def test_a_download_that_failed_says_what_to_look_at(server: Server) -> None:
    task = done(server, "alice/none-GGUF", Action.DOWNLOAD)
    assert task.state == TaskState.FAILED
    assert task.error.startswith("alice/none-GGUF could not be downloaded. Does the repository")
    # The server lists no such model: the page shows it all the same, before what may be folded.
    (row,) = (r for r in model_rows(server, model_activities()[server.pk]) if r.error)
    assert (row.id, row.state, row.error) == ("alice/none-GGUF", "failed", task.error)


def test_a_download_that_was_not_begun_is_cancelled(server: Server, router: Standin) -> None:
    start_action(server, MODEL, Action.DOWNLOAD)
    (row,) = (r for r in model_rows(server, model_activities()[server.pk]) if r.id == MODEL)
    assert (row.running, row.can_cancel) == ("downloading", True)
    start_action(server, MODEL, Action.UNLOAD)
    assert Task.objects.get().state == TaskState.CANCELLED
    assert MODEL not in router.states


@pytest.mark.parametrize("name", ["", "tiny", "a/b/c", "../x", "alice/tiny:Q8 0", "https://a/b"])
def test_a_name_that_is_no_repository_is_refused(server: Server, name: str) -> None:
    with pytest.raises(errors.NotSupported, match="Give a repository on Hugging Face"):
        check_action(server, name, Action.DOWNLOAD)


def test_other_kinds_of_servers_download_nothing(llama: LlamaProcess) -> None:
    server = Server(name="One", base_url=llama.base_url, kind=Kind.LLAMA_SERVER)
    with pytest.raises(errors.NotSupported, match="One cannot download models"):
        check_action(server, MODEL, Action.DOWNLOAD)


def test_a_model_that_it_did_not_download_is_not_deleted(server: Server) -> None:
    server = refreshed(server)
    with pytest.raises(errors.NotSupported, match="deletes only models that it downloaded itself"):
        check_action(server, "a", Action.DELETE)
