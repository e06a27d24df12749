"""Actions on models as durable tasks: queued, shown, run by a worker, cancelled."""

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.servers.loading import load_model as loading_load_model
from apps.servers.loading import run_action
from apps.servers.loading.activities import ModelActivity, model_activities, start_action
from apps.servers.loading.load_model import Action
from apps.servers.models import Server
from apps.work import services as work
from apps.work.models import Task, TaskState
from apps.work.tasks import run_task
from tests.llama_process import LlamaProcess
from tests.servers.conftest import server_at
from tests.standins import Model, Standin
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The tasks announced to the workers."""
    monkeypatch.setattr(loading_load_model, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(run_action, "CHECK_SECONDS", 0.05)
    found: list[int] = []
    monkeypatch.setattr(run_task, "delay", found.append)
    return found


@pytest.fixture
def router(llama: LlamaProcess) -> Iterator[Standin]:
    models = [Model("a", loaded=True), Model("b"), Model("broken", fails=True)]
    with Standin("router", llama, models=models) as started:
        yield started


@pytest.fixture
def server(router: Standin) -> Server:
    return server_at(router, kind="router", stored_facts=FACTS)


ACTIONS = ["load", "unload", "warm"]
FACTS = {"models": [{"id": name, "actions": ACTIONS} for name in ("a", "b", "broken")]}


def started(server: Server, model: str, action: Action) -> Task:
    start_action(server, model, action)
    return Task.objects.get(subject=f"{server.pk}:{action}:{model}")


def shown(server: Server, model: str) -> ModelActivity | None:
    return model_activities().get(server.pk, {}).get(model)


@pytest.mark.parametrize(("action", "model", "state"), [
    (Action.LOAD, "b", "loaded"), (Action.UNLOAD, "a", "unloaded"), (Action.WARM, "a", "loaded"),
])  # fmt: skip
def test_a_worker_does_what_was_started(
    router: Standin, server: Server, sent: list[int], action: Action, model: str, state: str
) -> None:
    task = started(server, model, action)
    assert sent == [task.pk]
    activity = shown(server, model)
    assert activity is not None
    assert (activity.action, activity.state, activity.error) == (action, "running", "")
    assert activity.wait_reason == "Waiting for a worker."
    work.run(task.pk)
    assert router.states[model] == state
    assert shown(server, model) is None


def test_starting_it_twice_does_it_once(server: Server, sent: list[int]) -> None:
    for _ in range(2):
        start_action(server, "b", Action.LOAD)
    assert len(sent) == Task.objects.count() == 1


def test_a_failure_is_shown_for_a_while(server: Server) -> None:
    work.run(started(server, "broken", Action.LOAD).pk)
    activity = shown(server, "broken")
    assert activity is not None
    assert activity.state == "failed"
    assert "broken failed to start" in activity.error
    Task.objects.update(finished=timezone.now() - timedelta(hours=1))
    assert shown(server, "broken") is None


def test_a_later_action_replaces_a_failure(server: Server) -> None:
    work.run(started(server, "broken", Action.LOAD).pk)
    work.run(started(server, "broken", Action.UNLOAD).pk)
    assert shown(server, "broken") is None


def test_unloading_ends_a_load_that_runs(router: Standin, server: Server) -> None:
    router.change(load_seconds=600)
    task = started(server, "b", Action.LOAD)
    worker = threading.Thread(target=work.run, args=[task.pk])
    worker.start()
    wait_until(lambda: router.loads, what="the load")
    work.run(started(server, "b", Action.UNLOAD).pk)
    worker.join()
    task.refresh_from_db()
    assert (task.state, task.error) == (TaskState.CANCELLED, "")
    assert router.states["b"] == "unloaded"
    assert shown(server, "b") is None


def test_unloading_ends_a_load_that_waits(router: Standin, server: Server) -> None:
    task = started(server, "b", Action.LOAD)
    started(server, "b", Action.UNLOAD)
    work.run(task.pk)
    assert router.loads == []


def test_the_progress_of_a_load_is_written(router: Standin, server: Server) -> None:
    router.change(load_seconds=600)
    task = started(server, "b", Action.LOAD)
    worker = threading.Thread(target=work.run, args=[task.pk])
    worker.start()
    wait_until(lambda: Task.objects.get(pk=task.pk).done, what="the progress")
    router.change(load_seconds=0)
    worker.join()
    task.refresh_from_db()
    assert task.total == 100
    assert 0 < task.done <= 100


def test_a_load_that_kills_its_workers_is_given_up(router: Standin, server: Server) -> None:
    task = started(server, "b", Action.LOAD)
    Task.objects.update(attempts=work.MAX_ATTEMPTS)
    work.run(task.pk)
    activity = shown(server, "b")
    assert activity is not None
    assert activity.error == "The worker ended 3 times during this. See the worker log."
    assert router.loads == []


def test_an_action_of_a_removed_server_ends(server: Server) -> None:
    task = started(server, "b", Action.LOAD)
    server.delete()
    work.run(task.pk)
    task.refresh_from_db()
    assert task.state == TaskState.DONE
