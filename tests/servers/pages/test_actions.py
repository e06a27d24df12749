"""POST /servers/<pk>/act/: load, unload or warm up a model."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.test import Client

from apps.servers.loading.activities import model_activities
from apps.servers.models import Kind, Server, State
from apps.servers.pages.fact_rows import model_rows
from apps.work import services as work
from apps.work.errors import TaskCancelled
from apps.work.models import Task, TaskState
from apps.work.tasks import run_task
from tests.llama_process import LlamaProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The tasks announced to the workers."""
    sent: list[int] = []
    monkeypatch.setattr(run_task, "delay", sent.append)
    return sent


@pytest.fixture
def swap(llama: LlamaProcess) -> Server:
    models = [
        {"id": "qwen-14b", "state": "unloaded", "actions": ["load", "unload", "warm"]},
        {"id": "gemma", "state": "loaded", "slots": 2, "actions": ["load", "unload", "warm"]},
    ]
    return Server.objects.create(
        name="Swap",
        base_url=llama.base_url,
        kind=Kind.LLAMA_SWAP,
        state=State.READY,
        stored_facts={"models": models},
    )


def act(browser: Client, server: Server, action: str, model: str) -> Any:
    return browser.post(f"/servers/{server.pk}/act/", {"action": action, "model": model})


def shown(server: Server, viewer: User) -> str:
    """The first model of a server, as its card shows it."""
    row = model_rows(server, model_activities().get(server.pk, {}))[0]
    return render_to_string("servers/_model.html", {"model": row, "pk": 1, "user": viewer})


def test_a_row_keeps_its_ids_where_another_model_comes_before_it() -> None:
    (alone,) = model_rows(Server(stored_facts={"models": [{"id": "b"}]}), {})
    both = Server(stored_facts={"models": [{"id": "a"}, {"id": "b"}]})
    assert [row.key == alone.key for row in model_rows(both, {})] == [False, True]


def test_states_and_abilities_are_capitalised_and_delete_looks_dangerous(
    swap: Server, carol: User
) -> None:
    swap.stored_facts["models"].insert(
        0, {"id": "a", "state": "unloaded", "vision": True, "actions": ["load", "delete"]}
    )
    page = shown(swap, carol)
    assert ">Unloaded</span>" in page
    assert ">Vision</span>" in page
    assert page.count("button-danger") == 1


def test_action_is_sent_to_the_worker(
    staff_browser: Client, server: Server, sent: list[Any]
) -> None:
    staff_browser.get("/servers/cards/")
    server.refresh_from_db()
    (model,) = server.model_ids
    answer = act(staff_browser, server, "warm", model).content.decode()
    task = Task.objects.get()
    assert sent == [task.pk]
    assert task.options == {"server": server.pk, "model": model, "action": "warm"}
    assert "Waiting for a worker." in answer
    assert "Warming up…" in answer
    assert 'id="said" role="status" hx-swap-oob="true"' in answer
    assert "Warming up" in answer


def test_a_load_under_way_shows_its_share_and_is_cancelled(
    staff_browser: Client, swap: Server, carol: User, sent: list[Any]
) -> None:
    act(staff_browser, swap, "load", "qwen-14b")
    held = work.claim(Task.objects.get().pk)
    assert held is not None
    held.report(43, 100)
    page = shown(swap, carol)
    assert "Loading, 43%…" in page
    assert ">Cancel</button>" in page
    act(staff_browser, swap, "unload", "qwen-14b")
    with pytest.raises(TaskCancelled):
        held.check()
    held.end(TaskState.CANCELLED)
    page = shown(swap, carol)
    assert "Unloading…" in page
    assert ">Cancel</button>" not in page


def test_what_the_server_does_not_do_is_said(
    staff_browser: Client, server: Server, sent: list[Any]
) -> None:
    staff_browser.get("/servers/cards/")
    server.refresh_from_db()
    (model,) = server.model_ids
    answer = act(staff_browser, server, "unload", model).content.decode()
    assert sent == []
    assert "notice-bad" in answer
    assert "a llama-server with one model" in answer


def test_an_unknown_model(staff_browser: Client, server: Server, sent: list[Any]) -> None:
    assert "no model" in act(staff_browser, server, "warm", "x").content.decode()
    assert sent == []


def test_no_such_action(staff_browser: Client, server: Server) -> None:
    assert act(staff_browser, server, "explode", "m").status_code == 400


def test_none_there(staff_browser: Client) -> None:
    assert staff_browser.post("/servers/999/act/", {"action": "load"}).status_code == 404


def test_only_staff(browser: Client, server: Server, sent: list[Any]) -> None:
    assert act(browser, server, "warm", "m").status_code == 403
    assert sent == []


def test_server_actions_refuse_get(staff_browser: Client, server: Server) -> None:
    assert staff_browser.get(f"/servers/{server.pk}/act/").status_code == 405
