"""Temporary chats: where they do not stand, how long they last, and keeping one."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import Q
from django.test import AsyncClient, Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from apps.chat.answering import titles
from apps.chat.attachments import receive
from apps.chat.conversation_list import library, list_rows, search
from apps.chat.conversations import ratings, services, temporary
from apps.chat.errors import TemporaryChat
from apps.chat.models import Attachment, CallState, Conversation, Message, Project, ToolCall
from apps.chat.tasks import delete_temporary
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from tests.chat.conftest import ask, events_of, told

pytestmark = pytest.mark.django_db
JSON = "application/json"


@pytest.fixture
def chat(alice: User) -> Conversation:
    """A temporary chat as it is after its first answer."""
    made = told(alice, "A secret kettle", "It whistles.", rating=1)
    made.title, made.temporary_until = temporary.TITLE, temporary.end_of(made.created)
    made.project = Project.objects.create(owner=alice, name="Tea")
    made.unread = True
    made.save()
    return made


def test_it_is_in_no_list_and_no_search(alice: User, chat: Conversation) -> None:
    answer = chat.messages.get(content="It whistles.")
    ToolCall.objects.create(
        answer=answer, round=1, call_id="a", name="x", arguments="{}", state=CallState.WAITING
    )
    assert not library.list_conversations(alice, project=chat.project_id).exists()
    assert not library.list_conversations(alice).exists()
    assert list_rows.rows_of(alice, {chat.pk}) == []
    assert not list_rows.needs_attention(alice)
    assert search.find(alice, "secret") == search.find(alice, "Temporary") == []
    temporary.keep(chat)
    assert [hit.message is None for hit in search.find(alice, "secret")] == [True, False]
    assert list_rows.needs_attention(alice)
    assert list(library.list_conversations(alice, project=chat.project_id)) == [chat]


def test_it_has_no_title_until_it_is_kept(chat: Conversation, settings: Settings) -> None:
    settings.TITLES = True
    Conversation.objects.filter(pk=chat.pk).update(title="A secret kettle")
    chat.refresh_from_db()
    assert not titles.may_change(chat)
    chat.title = temporary.TITLE
    temporary.keep(chat)
    chat.refresh_from_db()
    assert (chat.title, chat.temporary_until) == ("A secret kettle", None)
    assert titles.may_change(chat)


def test_a_title_of_its_own_stays(alice: User, chat: Conversation) -> None:
    chat.title = "Steam"
    temporary.keep(chat)
    chat.refresh_from_db()
    assert chat.title == "Steam"
    empty = services.open_conversation(owner=alice, is_temporary=True)
    temporary.keep(empty)
    assert str(empty) == "New chat"


def until(chat: Conversation) -> timedelta:
    chat.refresh_from_db()
    assert chat.temporary_until is not None
    return chat.temporary_until - timezone.now()


def test_leaving_and_coming_back(chat: Conversation) -> None:
    temporary.leave(chat)
    assert until(chat) <= temporary.AFTER_LEAVING
    temporary.stay(chat)
    assert until(chat) > temporary.LIFETIME - temporary.AFTER_LEAVING
    assert until(chat) < timedelta(hours=24)
    temporary.keep(chat)
    temporary.leave(chat)
    temporary.stay(chat)
    chat.refresh_from_db()
    assert chat.temporary_until is None


def test_after_its_time(alice: User, chat: Conversation) -> None:
    kept = told(alice, "Kept")
    file = receive.receive(alice, "tea.txt", SimpleUploadedFile("tea.txt", b"Tea"), None)
    Attachment.objects.filter(pk=file.pk).update(message=chat.messages.all()[0])
    delete_temporary()
    assert Conversation.of(alice, chat.pk) == chat
    Conversation.objects.filter(pk=chat.pk).update(temporary_until=timezone.now())
    assert Conversation.of(alice, chat.pk) is None
    delete_temporary()
    assert list(Conversation.objects.all()) == [kept]
    assert [message.content for message in Message.objects.all()] == ["Kept"]
    assert not Attachment.objects.exists()
    assert not file.path.exists()


def test_one_that_was_kept_meanwhile_is_not_deleted(chat: Conversation) -> None:
    read = Conversation.objects.get(pk=chat.pk)
    temporary.keep(chat)
    assert not services.delete(read, Q(temporary_until__lte=timezone.now()))
    assert Conversation.objects.filter(pk=chat.pk).exists()


def test_its_pages(client: Client, alice: User, chat: Conversation) -> None:
    client.force_login(alice)
    page = reverse("chat:conversation", args=[chat.pk])
    for refused in (
        client.get(reverse("chat:export", args=[chat.pk, "md"]), follow=True),
        client.post(reverse("chat:share", args=[chat.pk]), follow=True),
    ):
        assert refused.redirect_chain == [(page, 302)]
        assert str(TemporaryChat()) in refused.content.decode()
    assert b"Share a read-only copy" not in client.get(page).content
    assert client.post(reverse("chat:leave", args=[chat.pk])).status_code == 204
    assert until(chat) <= temporary.AFTER_LEAVING
    assert client.post(reverse("chat:stay", args=[chat.pk])).status_code == 204
    assert until(chat) > temporary.AFTER_LEAVING
    client.post(reverse("chat:delete", args=[chat.pk]))
    assert client.get(page).status_code == 404
    assert not Conversation.objects.exists()


async def text_of_all(alice: User, client: AsyncClient) -> str:
    found = ""
    for path in ("conversations", "conversations/export", "conversations/export?format=jsonl"):
        answer = await client.get(f"/api/v1/{path}")
        if answer.streaming:
            found += b"".join([part async for part in answer.streaming_content]).decode()
        else:
            found += answer.content.decode()
    rated = ratings.download(alice)
    return found + "".join([str(part) async for part in rated])


@pytest.mark.django_db(transaction=True)
async def test_over_http(
    alice: User, alice_api: AsyncClient, bob_api: AsyncClient, caller_server: Server
) -> None:
    chat, answer = await ask(alice_api, "Where is my kettle?", temporary=True)
    await events_of(alice_api, answer)
    url = f"/api/v1/conversations/{chat}"
    read = (await alice_api.get(url)).json()
    assert read["title"] == temporary.TITLE
    assert read["temporary_until"]
    assert read["messages"][0]["content"] == "Where is my kettle?"
    assert (await bob_api.get(url)).status_code == 404
    rating = {"rating": "up"}
    await alice_api.put(f"/api/v1/answers/{answer}/rating", rating, content_type=JSON)
    assert "kettle" not in await text_of_all(alice, alice_api)
    for method, path in (("post", "/shares"), ("get", "/export")):
        refused = await getattr(alice_api, method)(url + path)
        assert (refused.status_code, refused.json()["code"]) == (422, "temporary_chat")

    back = await alice_api.patch(url, {"temporary": True}, content_type=JSON)
    assert back.status_code == 422
    kept = await alice_api.patch(url, {"temporary": False}, content_type=JSON)
    assert (kept.json()["temporary_until"], kept.json()["title"]) == (None, "Where is my kettle?")
    assert "kettle" in await text_of_all(alice, alice_api)
    assert (await alice_api.post(f"{url}/shares")).status_code == 201


@pytest.mark.django_db(transaction=True)
async def test_a_question_in_one_that_was_left_keeps_it_open(
    alice_api: AsyncClient, caller_server: Server
) -> None:
    pk, answer = await ask(alice_api, temporary=True)
    await events_of(alice_api, answer)
    chat = await in_db(Conversation.objects.get, pk=pk)
    await in_db(temporary.leave, chat)
    again = f"/api/v1/answers/{answer}/regenerate"
    assert (await alice_api.post(again)).status_code == 202
    assert await in_db(until, chat) > temporary.AFTER_LEAVING
    gone = await alice_api.delete(f"/api/v1/conversations/{pk}")
    assert gone.status_code == 204
    assert not await in_db(Message.objects.exists)
