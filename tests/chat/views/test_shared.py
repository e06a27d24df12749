"""A shared copy, continued by the person who reads it."""

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.chat.conversations import sharing
from apps.chat.conversations.branch_view import active_branch
from apps.chat.models import Conversation
from tests.chat.conftest import told


def test_a_reader_continues_a_copy_in_a_chat_of_their_own(
    alice: User, bob: User, client: Client
) -> None:
    shared = sharing.share(alice, told(alice, "Which tea?", "Green.", reasoning="It is late."))
    client.force_login(bob)
    page = client.get(reverse("chat:shared", args=[shared.token])).content.decode()
    assert "Continue in my chats" in page
    client.post(reverse("chat:continue_shared", args=[shared.token]))
    made = Conversation.objects.owned_by(bob).get()
    found = [(view.message.role, view.message.content) for view in active_branch(made)]
    assert found == [("user", "Which tea?"), ("assistant", "Green.")]
    assert made.title == shared.title
    assert Conversation.objects.owned_by(alice).count() == 1


def test_a_copy_that_is_no_longer_shared_cannot_be_continued(
    alice: User, bob: User, client: Client
) -> None:
    shared = sharing.share(alice, told(alice, "q", "a"))
    shared.delete()
    client.force_login(bob)
    answer = client.post(reverse("chat:continue_shared", args=[shared.token]))
    assert answer.status_code == 404
    assert not Conversation.objects.owned_by(bob).exists()


def test_the_owner_has_the_chat_already(alice: User, browser: Client) -> None:
    shared = sharing.share(alice, told(alice, "q", "a"))
    page = browser.get(reverse("chat:shared", args=[shared.token])).content.decode()
    assert "Continue in my chats" not in page
