"""The settings of the next chat, and what a chat takes from them."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.chat.composer import changes
from apps.chat.composer.drafts import draft_of
from apps.chat.models import Conversation, Preset, SamplingParams
from apps.servers.models import Server
from tests.chat.conftest import told
from tests.markup import visible_text

SCHEMA = '{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}'


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Answers that would be generated. Nothing is: no test of this file needs their text."""
    found: list[int] = []
    for module in ("conversations.services", "composer.several"):
        monkeypatch.setattr(
            f"apps.chat.{module}.runner.start_answer",
            lambda answer, sent=None: found.append(answer.pk),
        )
    return found


def change(client: Client, chat: Conversation, name: str, value: Any) -> Any:
    return client.post(reverse("chat:composer_change", args=[chat.pk, name]), {"value": value})


def chips(client: Client, chat: Conversation) -> str:
    return visible_text(client.get(reverse("chat:chips", args=[chat.pk])).content.decode())


def test_draft_has_no_place_in_lists_or_pages(
    alice: User, browser: Client, demo_server: Server
) -> None:
    draft = draft_of(alice)
    assert draft == draft_of(alice)
    assert not Conversation.objects.exists()
    assert browser.get(reverse("chat:conversation", args=[draft.pk])).status_code == 404
    asked = browser.post(reverse("chat:send_message", args=[draft.pk]), {"content": "Hello"})
    assert asked.status_code == 404


def test_tool_json_and_preset_before_the_first_message(
    alice: User, browser: Client, demo_server: Server
) -> None:
    preset = Preset.objects.create(owner=alice, name="Cold", params={"temperature": 0.1})
    browser.get(reverse("chat:index"))
    draft = draft_of(alice)
    change(browser, draft, "preset", preset.pk)
    change(browser, draft, "tools", ["calculator", "start_generation_job"])
    shown = change(browser, draft, "json", SCHEMA).content.decode()
    for words in ("2 tools", "Cold, changed", "JSON, 1 field"):
        assert words in visible_text(shown)
    browser.post(reverse("chat:create"), {"content": "Hello"})
    chat = Conversation.objects.get()
    assert chat.sampling.temperature == 0.1
    assert chat.tool_settings.use == {"calculator": "always", "start_generation_job": "ask"}
    assert chat.response_format["json_schema"]["schema"]["required"] == ["name"]
    assert chat.preset == preset


def test_next_chat_keeps_the_choice_except_json(
    alice: User, browser: Client, demo_server: Server
) -> None:
    draft = draft_of(alice)
    change(browser, draft, "thinking", "512")
    change(browser, draft, "tools", ["calculator"])
    change(browser, draft, "json", SCHEMA)
    browser.post(reverse("chat:create"), {"content": "Hello"})
    kept = visible_text(browser.get(reverse("chat:index")).content.decode())
    assert "Thinking up to 512 tokens" in kept
    assert "1 tool" in kept
    assert "1 field" not in kept


@pytest.mark.parametrize(
    ("name", "value", "set_", "cleared"),
    [
        ("thinking", "off", "No thinking", "Thinking"),
        ("tools", ["calculator"], "1 tool", "Tools"),
        ("json", SCHEMA, "JSON, 1 field", "JSON"),
    ],
)
def test_change_without_a_value_clears_a_chip(
    alice: User, browser: Client, demo_server: Server, name: str, value: Any, set_: str,
    cleared: str,
) -> None:  # fmt: skip
    draft = draft_of(alice)
    change(browser, draft, name, value)
    assert set_ in chips(browser, draft)
    change(browser, draft, name, [] if name == "tools" else "")
    assert set_ not in chips(browser, draft)
    assert cleared in chips(browser, draft)


def test_clearing_the_preset_goes_back_to_the_defaults_of_the_model(
    alice: User, demo_server: Server
) -> None:
    preset = Preset.objects.create(
        owner=alice, name="Cold", server=demo_server, model="m", params={"temperature": 0.1}
    )
    draft = draft_of(alice)
    changes.choose_preset(draft, [str(preset.pk)])
    changes.choose_preset(draft, [""])
    draft.refresh_from_db()
    assert (draft.preset, draft.params, draft.model) == (None, {}, "m")


def test_save_as_preset_names_the_chip(alice: User, browser: Client, demo_server: Server) -> None:
    chat = told(alice, "Hello", "Hi")
    chat.params = SamplingParams(temperature=0.3).to_json()
    chat.save()
    assert "Mine" in visible_text(change(browser, chat, "save-preset", "Mine").content.decode())
    assert Preset.objects.get(name="Mine").params == {"temperature": 0.3}


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("model", "999 gone", "This model is no longer available. Choose another."),
        ("tools", ["no_such_tool"], "Unknown tool “no_such_tool”."),
        ("thinking", "much", "Thinking: Must be"),
        ("preset", "999", "This preset was deleted."),
        ("preset", "x", "This preset was deleted."),
        ("save-preset", " ", "Enter a preset name."),
        ("json", "[", "The schema is not valid JSON"),
    ],
)
def test_bad_change_is_refused_in_the_menu(
    alice: User, browser: Client, demo_server: Server, name: str, value: Any, sentence: str
) -> None:
    draft = draft_of(alice)
    refused = change(browser, draft, name, value)
    assert refused.status_code == 422
    assert refused.headers["HX-Retarget"] == "#menu-error"
    assert sentence in refused.content.decode()
    before = Conversation.drafts.get(pk=draft.pk)
    assert (before.params, before.tools, before.response_format) == ({}, {}, {})


def test_composer_of_someone_else_is_not_found(
    alice: User, bobs_browser: Client, client: Client, demo_server: Server
) -> None:
    preset = Preset.objects.create(owner=alice, name="Mine")
    for chat in (draft_of(alice), told(alice, "Hello", "Hi")):
        for name in ("model", "tools", "thinking", "preset", "json"):
            address = reverse("chat:composer_menu", args=[chat.pk, name])
            assert bobs_browser.get(address).status_code == 404
            assert client.get(address).status_code == 302
            assert change(bobs_browser, chat, name, "").status_code == 404
    bobs = draft_of(User.objects.get(username="bob"))
    assert change(bobs_browser, bobs, "preset", preset.pk).status_code == 422


def test_unknown_menus_and_changes_are_not_found(
    alice: User, browser: Client, demo_server: Server
) -> None:
    draft = draft_of(alice)
    assert browser.get(reverse("chat:composer_menu", args=[draft.pk, "x"])).status_code == 404
    assert change(browser, draft, "x", "").status_code == 404
