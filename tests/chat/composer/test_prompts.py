"""Prompts: finding, saving in versions, renaming and deleting them."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.chat.composer import prompts, starters
from apps.chat.models import Preset, Prompt
from apps.servers.models import Server
from tests.chat.conftest import told
from tests.markup import visible_text

pytestmark = pytest.mark.django_db


def test_pieces_are_texts_and_variables() -> None:
    found = prompts.pieces("Review {{ language }} code for {{focus}}.")
    assert [(p.text, p.is_variable) for p in found] == [
        ("Review ", False), ("language", True), (" code for ", False), ("focus", True),
        (".", False),
    ]  # fmt: skip


def test_a_changed_text_is_a_new_version(alice: User) -> None:
    first = prompts.save_prompt(alice, " /review code ", "Review it.")
    assert (first.name, first.version) == ("review-code", 1)
    assert prompts.save_prompt(alice, "review-code", "Review it.") == first
    second = prompts.save_prompt(alice, "review-code", "Review it well.")
    assert second.version == 2
    assert prompts.list_prompts(alice) == [second]
    assert prompts.versions(alice, "review-code") == [second, first]


def test_rename_and_delete_take_all_versions(alice: User, bob: User) -> None:
    prompts.save_prompt(alice, "old", "One.")
    newest = prompts.save_prompt(alice, "old", "Two.")
    prompts.save_prompt(bob, "old", "Bob's.")
    prompts.save_prompt(alice, "taken", "x")
    with pytest.raises(prompts.BadPrompt, match="already have a prompt “taken”"):
        prompts.rename_prompt(newest, "taken")
    prompts.rename_prompt(newest, "new")
    assert [prompt.text for prompt in prompts.versions(alice, "new")] == ["Two.", "One."]
    prompts.delete_prompt(newest)
    assert {prompt.name for prompt in Prompt.objects.all()} == {"old", "taken"}


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (" / ", "x", "Enter a name"),
        ("x", " ", "Enter the text"),
        ("x", "x" * 50_001, "The limit is 50,000 characters."),
    ],
)
def test_a_bad_prompt_keeps_what_was_typed(
    browser: Client, demo_server: Server, name: str, text: str, sentence: str
) -> None:
    refused = browser.post(reverse("chat:prompts"), {"name": name, "text": text})
    assert refused.status_code == 422
    assert sentence in refused.content.decode()
    assert not Prompt.objects.exists()


def test_slash_lists_own_prompts_by_their_beginning(
    alice: User, browser: Client, bobs_browser: Client
) -> None:
    prompts.save_prompt(alice, "letter-review", "Tone and {{facts}}.")
    prompts.save_prompt(alice, "review-code", "Review {{language}} code.")
    html = browser.get(reverse("chat:find_prompts"), {"q": "rev"}).content.decode()
    assert html.index("/review-code") < html.index("/letter-review")
    assert 'data-text="Review {{language}} code."' in html
    assert "New prompt “rev”" in html
    assert "/summarise" not in html
    examples = bobs_browser.get(reverse("chat:find_prompts")).content.decode()
    assert "/summarise" in examples
    assert "/review-code Review this" in visible_text(examples)


def test_library_page_creates_saves_restores_and_deletes(
    alice: User, browser: Client, bobs_browser: Client
) -> None:
    page = reverse("chat:prompts")
    browser.post(page, {"name": "review", "text": "One."})
    pk = Prompt.objects.get().pk
    address = reverse("chat:save_prompt", args=[pk])
    browser.post(address, {"name": "review", "text": "Two."})
    browser.post(address, {"name": "check", "text": "One."})  # the first version, restored
    html = browser.get(page).content.decode()
    assert "3 versions" in html
    assert "/check" in html
    assert bobs_browser.post(address, {"name": "x", "text": "x"}).status_code == 404
    delete = reverse("chat:delete_prompt", args=[pk])
    assert bobs_browser.post(delete).status_code == 404
    browser.post(delete)
    assert "No prompts yet." in browser.get(page).content.decode()


def test_starters_are_own_prompts_then_presets(alice: User) -> None:
    assert [s.text for s in starters.starters(alice, is_demo=True)] == [*starters.DEMO_QUESTIONS]
    assert "Summarise a text" in [s.title for s in starters.starters(alice, is_demo=False)]
    prompts.save_prompt(alice, "review", "Review it.")
    Preset.objects.create(owner=alice, name="Cold")
    found = starters.starters(alice, is_demo=True)
    assert [(s.title, s.preset is not None) for s in found] == [("review", False), ("Cold", True)]


def test_recent_chats_begin_with_those_at_work(alice: User, bob: User) -> None:
    quiet = [told(alice, "Hello", "Hi") for _ in range(4)]
    told(bob, "Hello", "Hi")
    running = quiet[0]
    running.messages.filter(role="assistant").update(status="queued")
    found = starters.recent(alice)
    assert [item.chat.pk for item in found] == [running.pk, quiet[3].pk, quiet[2].pk]
    assert [item.state for item in found] == ["running", "", ""]
