"""GET /servers/cards/ for servers that load models: looking loads and wakes nothing."""

import re

import pytest
from django.test import Client

from apps.runtime.redis import sync_redis
from tests.llama_process import LlamaProcess
from tests.markup import one_line
from tests.servers.conftest import server_at
from tests.standins.process import Standin
from tests.standins.state import Model

pytestmark = pytest.mark.django_db(transaction=True)

MODELS = [
    Model("chat-14b", slots=3, loaded=True),
    Model("judge-4b", slots=2),
    Model("asleep-1b", slots=1, sleeping=True),
]


def look(browser: Client) -> str:
    sync_redis().flushdb()  # not what was shown a second ago
    return browser.get("/servers/cards/").content.decode()


def test_a_router(staff_browser: Client, llama: LlamaProcess) -> None:
    with Standin("router", llama, models=MODELS, api_key="k") as router:
        server_at(router, "k")
        for _ in range(3):
            shown = look(staff_browser)
        assert router.loads == []
        assert router.states["asleep-1b"] == "sleeping"
        assert router.states["judge-4b"] == "unloaded"
        asked = [asked for asked in router.asked if asked["path"] == "/slots"]
        assert {asked["query"] for asked in asked} == {"model=chat-14b&autoload=false"}
    for words in ("Slots of router, chat-14b", "asleep-1b is sleeping"):
        assert words in shown
    assert {">Load<", ">Unload<"} <= set(re.findall(r">\w+<", one_line(shown)))
    assert "Slots of router, judge-4b" not in shown


def test_llama_swap(staff_browser: Client, llama: LlamaProcess) -> None:
    models = [Model("qwen-14b", slots=2), Model("gemma", slots=2)]
    with Standin("llama-swap", llama, models=models) as swap:
        server_at(swap)
        for _ in range(3):
            shown = look(staff_browser)
        assert swap.loads == []
    assert "Idle. No model is loaded. The next request loads one." in shown
    assert one_line(shown).count(">Load<") == 2


def test_olla_shows_no_slots(staff_browser: Client, llama: LlamaProcess) -> None:
    with Standin("olla", llama) as olla:
        server_at(olla, parallel=8)
        shown = look(staff_browser)
    assert shown.count("box-idle") == 8
    assert "Slots: not reported." in shown
    assert "Set by you" in shown
