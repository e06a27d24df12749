"""Two answers to one question side by side."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.urls import reverse

from apps.chat import errors
from apps.chat.conversations import compare, services
from apps.chat.models import Conversation, Message, Role, SamplingParams, Status
from apps.chat.presets import presets
from apps.chat.prompt import build
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from tests.chat.conftest import ask, events_of, text_of, told
from tests.chat.views.test_pages import page
from tests.markup import visible_text


def compared(owner: User, settings: dict[str, Any]) -> tuple[Conversation, Message, Message]:
    conversation = told(owner, "Which?", "Blue.", model="first-model")
    left = conversation.messages.get(content="Blue.")
    right = conversation.messages.create(
        parent=left.parent, role=Role.ASSISTANT, content="Red.", model="second-model",
        request={"as": settings, "beside": left.pk, "preset": "Dry"},
    )  # fmt: skip
    services.show_branch(right)
    return conversation, left, right


@pytest.fixture
def settings(demo_server: Server) -> dict[str, Any]:
    return {
        "server": demo_server.pk, "model": "second-model", "system_prompt": None,
        "params": {"temperature": 0.1},
    }  # fmt: skip


def test_side_by_side(alice: User, browser: Client, settings: dict[str, Any]) -> None:
    conversation, _, _ = compared(alice, settings)
    html = page(browser, conversation)
    assert html.index("first-model") < html.index("Blue.") < html.index("second-model")
    assert html.index("second-model") < html.index("Red.")
    assert "second-model · Dry" in visible_text(html)
    assert html.count("Keep this one") == 2


def test_keep_the_new_one(alice: User, browser: Client, settings: dict[str, Any]) -> None:
    conversation, _, right = compared(alice, settings)
    html = browser.post(reverse("chat:keep_answer", args=[right.pk])).content.decode()
    assert "Keep this one" not in html
    assert "Red." in html
    conversation.refresh_from_db()
    assert (conversation.model, conversation.params) == ("second-model", {"temperature": 0.1})


def test_keep_the_old_one(alice: User, browser: Client, settings: dict[str, Any]) -> None:
    conversation, left, _ = compared(alice, settings)
    html = browser.post(reverse("chat:keep_answer", args=[left.pk])).content.decode()
    assert "Keep this one" not in html
    assert "Blue." in html
    assert "Red." not in html
    conversation.refresh_from_db()
    assert (conversation.model, conversation.params) == ("", {})


def test_a_deleted_side_leaves_the_other(
    alice: User, browser: Client, settings: dict[str, Any]
) -> None:
    conversation, left, _ = compared(alice, settings)
    browser.post(reverse("chat:delete_message", args=[left.pk]))
    html = page(browser, conversation)
    assert "Red." in html
    assert "Keep this one" not in html


def test_the_form(alice: User, browser: Client, demo_server: Server) -> None:
    answer = told(alice, "Which?", "Blue.").messages.last()
    html = browser.get(reverse("chat:compare", args=[answer.pk])).content.decode()
    assert "workbench-demo" in html
    gone = browser.post(reverse("chat:compare", args=[answer.pk]), {"model": "99 x"})
    assert gone.status_code == 422


def test_compare_asks_with_the_settings_of_its_side(alice: User, settings: dict[str, Any]) -> None:
    _, _, right = compared(alice, settings)
    asked = build.for_answer(right.pk)
    assert (asked.server.pk, asked.model) == (settings["server"], "second-model")
    assert asked.params.to_json() == {"temperature": 0.1}
    right.request["as"]["server"] = 12345  # gone since
    right.request["as"]["system_prompt"] = 12345
    right.save()
    assert build.for_answer(right.pk).system_prompt is None


def test_an_answer_being_written_cannot_be_compared(alice: User, demo_server: Server) -> None:
    answer = told(alice, "Which?", "", status=Status.QUEUED).messages.last()
    assert answer is not None
    with pytest.raises(errors.StillAnswering):
        compare.compare(answer)


@pytest.mark.django_db(transaction=True)
async def test_with_a_preset(
    alice: User, alice_api: AsyncClient, alice_browser: AsyncClient, server: Server
) -> None:
    conversation, answer = await ask(alice_api, "Hello", max_tokens=5)
    await events_of(alice_api, answer)
    preset = await in_db(
        presets.save, owner=alice, name="Long", server=None, model="", system_prompt=None,
        params=SamplingParams(max_tokens=9),
    )  # fmt: skip
    found = await Message.objects.aget(pk=answer)
    found.request = {}  # else its own max_tokens would go along
    await found.asave()
    shown = await alice_browser.post(reverse("chat:compare", args=[answer]), {"preset": preset.pk})
    assert "Answer comparison" in shown.content.decode()
    other = await Message.objects.filter(conversation=conversation).answers().alatest("pk")
    assert text_of(await events_of(alice_api, other.pk))
    await other.arefresh_from_db()
    assert other.completion_tokens == 9


@pytest.mark.django_db(transaction=True)
async def test_over_http(alice_api: AsyncClient, bob_api: AsyncClient, server: Server) -> None:
    _, answer = await ask(alice_api, "Hello", max_tokens=5)
    await events_of(alice_api, answer)
    address = f"/api/v1/answers/{answer}/compare"
    body = {"server": server.pk}
    assert (await bob_api.post(address, body, content_type="application/json")).status_code == 404
    made = await alice_api.post(address, body, content_type="application/json")
    assert made.status_code == 202
    assert text_of(await events_of(alice_api, made.json()["id"]))
