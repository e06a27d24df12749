"""What the head of a page says of the model that answers."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.urls import reverse
from django.utils import timezone

from apps.chat.composer.drafts import draft_of
from apps.chat.conversations.model_state import ModelState
from apps.servers import services as llm
from apps.servers.models import Kind, Server, State
from tests.chat.conftest import ask, events_of


@pytest.fixture
def other(db: None) -> Server:
    facts = {"models": [{"id": "qwen", "state": "unloaded"}, {"id": "phi", "state": "loaded"}]}
    return Server.objects.create(
        name="Other", base_url="http://127.0.0.1:9/v1", kind=Kind.ROUTER, state=State.READY,
        stored_facts=facts, checked_at=timezone.now(),
        next_check_at=timezone.now() + timedelta(hours=1),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("server_state", "model_state", "status", "words", "look_again"),
    [
        (State.READY, "loaded", "ready", "", None),
        (State.READY, "unknown", "ready", "", None),
        (State.READY, "loading", "loading", "loading…", 2),
        (State.READY, "unloaded", "unloaded", "not loaded", 5),
        (State.READY, "failed", "failed", "failed to start", 5),
        (State.LOADING, "loaded", "loading", "loading… 7 s", 2),
        (State.UNAUTHORIZED, "loaded", "unauthorized", "key rejected", 5),
    ],
)
def test_model_state_has_status_and_label_of_each_state(
    server_state: State,
    model_state: str,
    status: str,
    words: str,
    look_again: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    server = Server(
        name="Big", state=server_state,
        stored_facts={"models": [{"id": "m", "state": model_state}]},
        state_since=now - timedelta(seconds=7.5),
    )  # fmt: skip
    state = ModelState(llm.Target(server, "m"))
    assert (state.name, state.status, state.label) == ("m", status, words)
    assert state.poll_seconds == look_again
    assert bool(state.hint) == (status != "ready")


def test_the_state_of_the_model_of_the_next_chat(
    alice: User, bobs_browser: Client, browser: Client, demo_server: Server, other: Server
) -> None:
    draft = draft_of(alice)
    address = reverse("chat:model", args=[draft.pk])
    assert ">workbench-demo</span>" in browser.get(address).content.decode()
    draft.server, draft.model = other, "qwen"
    draft.save()
    head = browser.get(address).content.decode()
    assert ">qwen</span>" in head
    assert "not loaded" in head
    assert "every 5s" in head
    assert browser.post(address).status_code == 405
    assert bobs_browser.get(address).status_code == 404


@pytest.mark.django_db(transaction=True)
async def test_a_server_that_went_away_is_said_to_be(
    alice_api: AsyncClient,
    alice_browser: AsyncClient,
    demo_server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its page has called it ready, and would not ask again."""
    monkeypatch.setattr("apps.servers.retry.RESTART_SECONDS", 0.0)
    _, answer = await ask(alice_api)
    await events_of(alice_api, answer)
    html = (await alice_browser.get(f"/chat/answers/{answer}/")).content.decode()
    assert "The model server is not responding" in html
    assert "offline" in html
    assert 'id="model-state" hx-swap-oob="true"' in html
