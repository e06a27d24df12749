"""The settings panel: the server's defaults on its sliders, and versions of a prompt compared."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.chat.composer.server_line import ServerLine
from apps.chat.conversations import services
from apps.chat.presets import system_prompts
from apps.chat.presets.system_prompts import DifferencePart
from apps.chat.prompt import params_form
from apps.servers.models import Kind, Server
from tests.markup import visible_text


def panel(client: Client, owner: User) -> str:
    chat = services.open_conversation(owner=owner)
    return client.get(reverse("chat:settings", args=[chat.pk])).content.decode()


def test_sliders_show_what_the_server_reports(
    alice: User, browser: Client, demo_server: Server
) -> None:
    shown = panel(browser, alice)
    assert 'placeholder="not reported"' in shown
    assert "slider-tick" not in shown
    facts = demo_server.stored_facts
    facts["models"][0]["sampling"] = {"temperature": 0.8, "top_k": 40.0}
    demo_server.save()
    shown = panel(browser, alice)
    assert 'placeholder="0.8, default"' in shown
    assert '<rect x="40.0"' in shown  # 0.8 of 2, and 40 of 100
    assert 'data-default="0.8"' in shown


def test_panel_says_slots_only_where_they_are_known(
    alice: User, browser: Client, demo_server: Server
) -> None:
    assert "4 slots of 2,048 tokens" in visible_text(panel(browser, alice))
    demo_server.kind, demo_server.stored_facts = Kind.OPENAI, {"models": [{"id": "qwen"}]}
    demo_server.save()
    shown = visible_text(panel(browser, alice))
    assert "slots not reported" in shown
    assert "4 slots" not in shown


@pytest.mark.parametrize(
    ("line", "summary"),
    [
        (ServerLine(slots=1, context=4096), "1 slot of 4,096 tokens"),
        (ServerLine(slots=4), "4 slots"),
        (ServerLine(context=4096), "slots not reported, 4,096 tokens of context"),
        (ServerLine(), "slots not reported"),
    ],
)
def test_slots_and_context_as_a_phrase(line: ServerLine, summary: str) -> None:
    assert line.summary == summary


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [("temperature", 5, 100), ("presence_penalty", 0, 50), ("top_k", 10, 10), ("seed", 1, None)],
)
def test_tick_lies_within_the_slider(name: str, value: float, place: float | None) -> None:
    (field,) = (field for field in params_form.NUMBERS if field.name == name)
    assert field.tick(value) == place


def test_difference_is_word_by_word() -> None:
    assert system_prompts.difference("Be short and kind.", "Be kind.") == [
        DifferencePart("same", "Be "),
        DifferencePart("removed", "short and "),
        DifferencePart("same", "kind."),
    ]
    added = system_prompts.difference("", "Be\nkind.")
    assert added == [DifferencePart("added", "Be\nkind.")]


def test_difference_of_long_texts_is_line_by_line() -> None:
    lines = [f"Line {n} of a long prompt.\n" for n in range(2000)]
    changed = [*lines[:1000], "New.\n", *lines[1000:]]
    parts = system_prompts.difference("".join(lines), "".join(changed))
    assert [part.text for part in parts if part.kind != "same"] == ["New.\n"]


def test_two_versions_of_a_prompt_are_compared(
    alice: User, browser: Client, bobs_browser: Client, demo_server: Server
) -> None:
    old, new = (
        system_prompts.save_system_prompt(owner=alice, name="Law", text=text)
        for text in ("Quote <the> law.", "Quote the law twice.")
    )
    chat = services.open_conversation(owner=alice, system_prompt=new)
    html = browser.get(reverse("chat:settings", args=[chat.pk])).content.decode()
    assert "Compare two versions" in html
    address = reverse("chat:compare_prompts", args=[chat.pk])
    html = browser.get(address, {"old": new.pk, "new": old.pk}).content.decode()
    assert "Version 1 to version 2" in visible_text(html)
    assert "<del>&lt;the&gt;</del>" in html
    assert browser.get(address, {"old": old.pk}).status_code == 404
    assert bobs_browser.get(address, {"old": old.pk, "new": new.pk}).status_code == 404


def test_another_prompt_renders_the_panel_again(
    alice: User, browser: Client, demo_server: Server
) -> None:
    prompt = system_prompts.save_system_prompt(owner=alice, name="Law", text="Quote the law.")
    chat = services.open_conversation(owner=alice)
    address = reverse("chat:settings", args=[chat.pk])
    html = browser.post(address, {"system_prompt": prompt.pk, "reload": "1"}).content.decode()
    assert "Quote the law.</textarea>" in html
