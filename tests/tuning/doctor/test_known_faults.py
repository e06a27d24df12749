"""What the Servers page says of faults that need no examination."""

import re
import time
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client

from apps.llm.errors import Stalled
from apps.monitoring.history import store
from apps.monitoring.history.measurement import Measurement
from apps.servers.models import Kind, Server, State
from apps.servers.services import record_error
from apps.tuning.doctor.known_faults import known_faults
from tests.markup import visible_text

pytestmark = pytest.mark.django_db(transaction=True)


def a_server(**facts: Any) -> Server:
    number = Server.objects.count()
    return Server.objects.create(
        name="GPU box",
        base_url=f"http://127.0.0.{9 + number}:9/v1",
        kind=Kind.LLAMA_SERVER,
        state=State.READY,
        stored_facts={"models": [{"id": "qwen", "context_trained": 8192}], **facts},
    )


def record(server: Server, **amounts: int) -> None:
    store.add(server, {"qwen": Measurement(**amounts)}, time.time())


def page(browser: Client) -> str:
    return visible_text(browser.get("/servers/").content.decode())


def test_answers_without_content_are_a_fault_on_the_page(browser: Client) -> None:
    server = a_server(slots=4, context=4096)
    record(server, ended=20, only_thought=12)
    shown = page(browser)
    assert "GPU box 1 fault" in shown
    assert "In the last 24 hours 12 of 20 (39% to 78%) answers" in shown
    assert "Examine GPU box" in shown


def test_slots_too_small_are_found_without_any_request() -> None:
    server = a_server(slots=8, context=256)
    [sentence] = known_faults([server])[server.pk]
    assert "8 slots of 256 tokens each" in sentence


def test_a_server_with_several_models_names_the_one_with_the_fault() -> None:
    models = [{"id": name, "state": "loaded"} for name in ("qwen", "gemma")]
    server = a_server(models=models)
    Server.objects.update(kind=Kind.ROUTER)
    server.refresh_from_db()
    record(server, ended=9, only_thought=9)
    [sentence] = known_faults([server])[server.pk]
    assert sentence.startswith("qwen: Thinking uses up max tokens")


def test_a_stuck_server_is_a_fault() -> None:
    server = a_server(slots=4, context=4096)
    async_to_sync(record_error)(server, Stalled("No token."))
    [sentence] = known_faults([server])[server.pk]
    assert "returns no token. No request has had a token for " in sentence


@pytest.mark.parametrize("loaded", [["qwen"], []], ids=["one in memory", "between two models"])
def test_models_that_take_turns_are_a_fault_of_their_server(loaded: list[str]) -> None:
    names = ("qwen", "gemma")
    models = [{"id": one, "state": "loaded" if one in loaded else "unloaded"} for one in names]
    server = a_server(models=models)
    Server.objects.update(kind=Kind.LLAMA_SWAP)
    server.refresh_from_db()
    store.add(server, {"": Measurement(loads=7)}, time.time())
    [sentence] = known_faults([server])[server.pk]
    assert "loaded 7 times or more often, 7 times within ten minutes" in sentence


def test_a_healthy_server_has_no_word_of_it(browser: Client) -> None:
    server = a_server(slots=4, context=4096)
    record(server, ended=200, only_thought=2)
    assert known_faults([server]) == {}
    assert not re.search(r"\bfaults?\b", page(browser))
