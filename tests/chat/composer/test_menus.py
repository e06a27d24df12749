"""The menus of the composer: what they list, and in which order."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.chat.composer import model_menu
from apps.chat.composer.drafts import draft_of
from apps.chat.composer.server_line import server_line
from apps.chat.models import Conversation, Preset
from apps.chat.presets import model_choices, presets
from apps.servers import services as llm
from apps.servers.models import Kind, Server, State
from tests.markup import visible_text

pytestmark = pytest.mark.django_db


def a_server(name: str, server_state: State = State.READY, **model: object) -> Server:
    now = timezone.now()
    return Server.objects.create(
        name=name, base_url="http://127.0.0.1:9/v1", kind=Kind.ROUTER, state=server_state,
        stored_facts={"models": [{"id": f"{name}-model", "state": "loaded"} | model]},
        checked_at=now, next_check_at=now + timedelta(hours=1),
    )  # fmt: skip


def menu(client: Client, chat: Conversation, name: str = "model") -> str:
    return client.get(reverse("chat:composer_menu", args=[chat.pk, name])).content.decode()


def test_model_menu_lists_favourites_first_and_offline_servers_last(
    alice: User, browser: Client, demo_server: Server
) -> None:
    a_server("gone", State.UNREACHABLE)
    qwen = a_server("qwen", vision=True, reasoning=True, context=32768)
    a_server("vectors", embeddings=True)
    draft = draft_of(alice)
    key = model_choices.key_of(qwen.pk, "qwen-model")
    browser.post(reverse("chat:favourite_model", args=[draft.pk]), {"value": key})
    groups = model_menu.model_groups(draft, alice)
    assert [group.name for group in groups] == ["Favourites", "Demo", "gone"]
    assert [row.is_offline for row in groups[-1].rows] == [True]
    html = menu(browser, draft)
    shown = visible_text(html)
    assert "vectors-model" not in shown
    assert "32,768" in shown
    assert 'aria-label="Images"' in html
    assert 'aria-label="Thinking"' in html
    assert html.count("disabled") == 1
    again = browser.post(reverse("chat:favourite_model", args=[draft.pk]), {"value": key})
    assert "Favourites" not in again.content.decode()


def test_favourite_of_an_unknown_model_is_refused(
    alice: User, browser: Client, demo_server: Server
) -> None:
    address = reverse("chat:favourite_model", args=[draft_of(alice).pk])
    assert browser.post(address, {"value": "999 gone"}).status_code == 422
    assert model_menu.favourites_of(alice) == []


def test_model_menu_says_what_is_not_loaded(alice: User, demo_server: Server) -> None:
    a_server("big", **{"state": "unloaded"})
    groups = {group.name: group.rows for group in model_menu.model_groups(draft_of(alice), alice)}
    (row,) = groups["big"]
    assert (row.note, row.load, row.status) == ("Not loaded", "", "unknown")


def test_model_menu_counts_slots_only_where_the_server_reports_them(
    alice: User, browser: Client, demo_server: Server
) -> None:
    now = timezone.now()
    Server.objects.create(
        name="Cloud", base_url="http://127.0.0.1:9/v1", kind=Kind.OPENAI, state=State.READY,
        stored_facts={"models": [{"id": "big"}]},
        checked_at=now, next_check_at=now + timedelta(hours=1),
    )  # fmt: skip
    draft = draft_of(alice)
    groups = {group.name: group.rows for group in model_menu.model_groups(draft, alice)}
    (demo,), (cloud,) = groups["Demo"], groups["Cloud"]
    assert (demo.load, cloud.load) == ("0 of 4 busy", "")
    assert replace(cloud, busy=2).load == "2 busy"
    assert visible_text(menu(browser, draft)).count("Cloud") == 1


def test_menus_show_what_is_set(alice: User, browser: Client, demo_server: Server) -> None:
    draft = draft_of(alice)
    preset = Preset.objects.create(owner=alice, name="Cold", model="m")
    presets.apply(preset, draft)
    draft.tools = {"use": {"calculator": "ask"}}
    draft.params = {"thinking": 512}
    draft.save()
    tools = menu(browser, draft, "tools")
    assert tools.count(" checked") == 1
    assert 'value="calculator" checked' in " ".join(tools.split())
    assert "Up to 512 tokens" in menu(browser, draft, "thinking")
    assert f'data-value="{preset.pk}"' in menu(browser, draft, "preset")
    assert "Without fields, the model answers in free text." in menu(browser, draft, "json")


def test_line_below_the_composer_says_slots_and_context(
    alice: User, browser: Client, demo_server: Server
) -> None:
    line = server_line(llm.Target(demo_server, "workbench-demo"))
    assert (line.slots, line.free, line.context) == (4, 4, 2048)
    assert "4 of 4 slots free" in visible_text(browser.get("/chat/").content.decode())


def test_line_below_the_composer_becomes_the_error_when_offline(
    alice: User, browser: Client, demo_server: Server
) -> None:
    demo_server.state = State.UNREACHABLE
    demo_server.stored_facts |= {"error": "Connection refused."}
    demo_server.save()
    shown = visible_text(browser.get("/chat/").content.decode())
    assert "Connection refused." in shown
    assert "slots free" not in shown
