"""Editing, going on, deleting and Undo: the tree, with a real model where one is asked."""

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.urls import reverse
from django.utils import timezone

from apps.chat.conversations import branch_view, branches, services
from apps.chat.models import Conversation, Message, Role, Status
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from tests.chat.conftest import ask, events_of, text_of, told
from tests.chat.views.test_pages import page
from tests.waiting import until


async def last_answer(conversation: int) -> Message:
    return (
        await Message.objects.filter(conversation=conversation).answers().order_by("-pk").afirst()
    )  # type: ignore[return-value]


@pytest.mark.django_db(transaction=True)
async def test_an_edited_question_is_a_sibling_with_its_own_answer(
    alice_api: AsyncClient, alice_browser: AsyncClient, server: Server
) -> None:
    conversation, answer = await ask(alice_api, "Hello", max_tokens=5)
    await events_of(alice_api, answer)
    question = await Message.objects.aget(role=Role.USER)
    shown = await alice_browser.post(
        reverse("chat:edit", args=[question.pk]), {"content": "Good morning"}
    )
    html = shown.content.decode()
    assert "Good morning" in html
    assert ">Hello<" not in html
    assert "Message 2 of 2" in html
    edited = await last_answer(conversation)
    assert edited.request == {"params": {"max_tokens": 5}}
    await events_of(alice_api, edited.pk)
    assert await Message.objects.acount() == 4


@pytest.mark.django_db(transaction=True)
async def test_continued_answer_extends_its_text(
    alice_api: AsyncClient, alice_browser: AsyncClient, server: Server
) -> None:
    conversation, answer = await ask(alice_api, "Hello", max_tokens=5)
    first = text_of(await events_of(alice_api, answer))
    response = await alice_browser.post(reverse("chat:continue_answer", args=[answer]))
    assert response.status_code == 200
    longer = await last_answer(conversation)
    assert longer.pk != answer
    text = text_of(await events_of(alice_api, longer.pk))
    await longer.arefresh_from_db()
    assert longer.content == text
    assert text.startswith(first.rstrip())  # it goes on without blanks at the joint
    assert len(text) > len(first)
    # Message had been read before, but for the joint. What nonsense was written in five tokens
    # may be read in others.
    cut = await Message.objects.aget(pk=answer)
    assert cut.prompt_tokens is not None
    assert longer.cached_tokens is not None
    assert longer.cached_tokens >= cut.prompt_tokens - 4
    assert longer.completion_tokens == 5


@pytest.mark.django_db(transaction=True)
async def test_a_regenerated_answer_does_not_go_on(
    alice_api: AsyncClient, alice_browser: AsyncClient, server: Server
) -> None:
    conversation, answer = await ask(alice_api, "Hello", max_tokens=5)
    await events_of(alice_api, answer)
    await alice_browser.post(reverse("chat:continue_answer", args=[answer]))
    longer = await last_answer(conversation)
    await events_of(alice_api, longer.pk)
    await alice_browser.post(reverse("chat:regenerate", args=[longer.pk]))
    again = await last_answer(conversation)
    await events_of(alice_api, again.pk)
    assert "continues" not in again.request
    assert "continues" in longer.request


@pytest.mark.django_db(transaction=True)
async def test_a_question_without_an_answer_is_answered(
    alice_api: AsyncClient, alice_browser: AsyncClient, server: Server
) -> None:
    conversation, answer = await ask(alice_api, "Hello", max_tokens=5)
    await events_of(alice_api, answer)
    await alice_browser.post(reverse("chat:delete_message", args=[answer]))
    question = await Message.objects.aget(role=Role.USER)
    await alice_browser.post(reverse("chat:answer_message", args=[question.pk]))
    new = await last_answer(conversation)
    assert new.parent_id == question.pk
    assert text_of(await events_of(alice_api, new.pk))


@pytest.mark.django_db(transaction=True)
async def test_deleting_stops_what_is_being_written(
    alice_api: AsyncClient,
    server: Server,
    slow_llama: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Tests have one thread for the database: the answer's end is saved after it.
    monkeypatch.setattr("apps.chat.answering.runner.STOP_SECONDS", 0.1)
    _, answer = await ask(alice_api, "Hello", max_tokens=3000)
    question = await Message.objects.aget(role=Role.USER)
    await in_db(branches.delete, question)

    async def has_stopped() -> bool:
        return await Message.objects.filter(pk=answer, status=Status.STOPPED).aexists()

    await until(has_stopped)
    removed = await Message.objects.aget(pk=answer)
    assert removed.deleted_at is not None


def test_nothing_to_go_on_from(alice: User, browser: Client, demo_server: Server) -> None:
    conversation = told(alice, "Hello", "", status=Status.STOPPED)
    response = browser.post(reverse("chat:continue_answer", args=[conversation.messages.last().pk]))
    assert response.status_code == 422
    assert "no text to continue from" in response.content.decode()


def test_an_empty_edit(alice: User, browser: Client, demo_server: Server) -> None:
    conversation = told(alice, "Hello", "Hi")
    question = conversation.messages.first()
    response = browser.post(reverse("chat:edit", args=[question.pk]), {"content": " "})
    assert response.status_code == 422
    assert conversation.messages.count() == 2


def test_an_answer_cannot_be_edited(alice: User, browser: Client) -> None:
    answer = told(alice, "Hello", "Hi").messages.last()
    assert browser.post(reverse("chat:edit", args=[answer.pk]), {"content": "x"}).status_code == 404
    assert browser.get(reverse("chat:edit_form", args=[answer.pk])).status_code == 404


def test_the_edit_form_and_back(alice: User, browser: Client) -> None:
    question = told(alice, "<b>Hello</b>", "Hi").messages.first()
    form = browser.get(reverse("chat:edit_form", args=[question.pk])).content.decode()
    assert "&lt;b&gt;Hello" in form
    assert "<textarea" in form
    back = browser.get(reverse("chat:user_message", args=[question.pk])).content.decode()
    assert "<textarea" not in back


def test_delete_and_undo(alice: User, browser: Client, demo_server: Server) -> None:
    conversation = told(alice, "one", "two", "three", "four")
    third = conversation.messages.get(content="three")
    html = browser.post(reverse("chat:delete_message", args=[third.pk])).content.decode()
    assert "2 messages deleted." in html
    assert ">four<" not in html
    assert "two" in page(browser, conversation)
    html = browser.post(reverse("chat:restore_message", args=[third.pk])).content.decode()
    assert "four" in html
    conversation.refresh_from_db()
    assert conversation.active_leaf.content == "four"


def test_a_deleted_version_leaves_the_other_one(
    alice: User,
    browser: Client,
    demo_server: Server,
) -> None:
    conversation = told(alice, "Hello", "First answer")
    question = conversation.messages.first()
    second = conversation.messages.create(
        parent=question, role=Role.ASSISTANT, content="Second answer"
    )
    services.show_branch(second)
    html = browser.post(reverse("chat:delete_message", args=[second.pk])).content.decode()
    assert "First answer" in html
    assert "Second answer" not in html
    assert "1/2" not in html
    assert browser.post(reverse("chat:select_version", args=[second.pk])).status_code == 404


def test_everything_deleted_is_an_empty_conversation(
    alice: User,
    browser: Client,
    demo_server: Server,
) -> None:
    conversation = told(alice, "Hello", "Hi")
    browser.post(reverse("chat:delete_message", args=[conversation.messages.first().pk]))
    conversation.refresh_from_db()
    assert conversation.active_leaf is None
    assert page(browser, conversation)


def test_two_deletions_come_back_one_by_one(alice: User) -> None:
    conversation = told(alice, "one", "two", "three", "four")
    first, third = (
        conversation.messages.get(content="one"),
        conversation.messages.get(content="three"),
    )
    branches.delete(third)
    branches.delete(first)
    first.refresh_from_db()
    branches.restore(first)
    shown = [item.message.content for item in branch_view.active_branch(Conversation.objects.get())]
    assert shown == ["one", "two"]


def test_what_was_deleted_long_ago_is_gone(alice: User) -> None:
    conversation = told(alice, "one", "two")
    branches.delete(conversation.messages.last())
    assert branches.purge(timezone.now()) == 1
    assert [m.content for m in conversation.messages.all()] == ["one"]
