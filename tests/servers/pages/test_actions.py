"""POST /servers/<pk>/act/: load, unload or warm up a model."""

from typing import Any

import pytest
from django.test import Client

from apps.servers.models import Kind, Server, State
from apps.servers.tasks import act_on_model
from tests.llama_process import LlamaProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What was put into the queue of the workers."""
    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr(act_on_model, "delay", lambda *args: sent.append(args))
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


def test_it_works(staff_browser: Client, server: Server, sent: list[Any]) -> None:
    staff_browser.get("/servers/cards/")
    server.refresh_from_db()
    (model,) = server.model_ids
    answer = act(staff_browser, server, "warm", model).content.decode()
    assert sent == [(server.pk, model, "warm")]
    assert "Warming up…" in answer
    assert 'id="said" role="status" hx-swap-oob="true"' in answer
    assert "Warming up" in answer


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


def test_wrong_verb(staff_browser: Client, server: Server) -> None:
    assert staff_browser.get(f"/servers/{server.pk}/act/").status_code == 405
