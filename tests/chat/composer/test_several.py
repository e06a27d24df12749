"""One message to several models at once."""

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.chat.composer import changes, several
from apps.chat.composer.drafts import draft_of
from apps.chat.conversations import compare
from apps.chat.models import Conversation
from apps.chat.presets import model_choices
from apps.servers.models import Server
from tests.chat.composer.test_drafts import started
from tests.chat.views.test_pages import page

__all__ = ["started"]


def two_models(person: User, server: Server, *others: str) -> Conversation:
    draft = draft_of(person)
    for name in others:
        changes.toggle_model(draft, [model_choices.key_of(server.pk, name)])
    return draft


def test_first_message_goes_to_all_chosen_models(
    alice: User, browser: Client, demo_server: Server, started: list[int]
) -> None:
    two_models(alice, demo_server, "second", "third")
    browser.post(reverse("chat:create"), {"content": "Which?"})
    chat = Conversation.objects.get()
    answers = list(chat.messages.answers().order_by("pk"))
    assert [answer.pk for answer in answers] == started
    assert [answer.request.get("beside") for answer in answers] == [
        None, answers[0].pk, answers[0].pk,
    ]  # fmt: skip
    html = page(browser, chat)
    assert html.count("Keep this one") == 3
    assert "+ second" in html


def test_keeping_one_answer_goes_on_with_its_model_alone(
    alice: User, browser: Client, demo_server: Server, started: list[int]
) -> None:
    two_models(alice, demo_server, "second")
    browser.post(reverse("chat:create"), {"content": "Which?"})
    chat = Conversation.objects.get()
    compare.keep(chat.messages.answers().latest("pk"))
    chat.refresh_from_db()
    assert (chat.model, chat.other_models) == ("second", [])
    assert "Keep this one" not in page(browser, chat)


def test_toggle_removes_what_it_added_and_takes_at_most_four(
    alice: User, demo_server: Server
) -> None:
    draft = two_models(alice, demo_server, "a", "b", "c", "d")
    assert len(draft.other_models) == several.MAX_MODELS - 1
    changes.toggle_model(draft, [model_choices.key_of(demo_server.pk, "d")])
    assert draft.other_models == [model_choices.key_of(demo_server.pk, name) for name in ("b", "c")]
    changes.choose_model(draft, [model_choices.key_of(demo_server.pk, "a")])
    assert draft.other_models == []
    changes.toggle_model(draft, [model_choices.key_of(demo_server.pk, "a")])
    assert draft.other_models == []


def test_model_that_is_gone_is_left_out(
    alice: User, browser: Client, demo_server: Server, started: list[int]
) -> None:
    draft = draft_of(alice)
    draft.other_models = ["999 gone"]
    draft.save()
    browser.post(reverse("chat:create"), {"content": "Which?"})
    assert len(started) == 1
    assert Conversation.objects.count() == 1
