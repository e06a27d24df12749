"""What is sent before it is asked, and the copies that a person shares."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.chat.answering import prefill
from apps.chat.conversation_list import search
from apps.chat.conversations import sharing
from apps.chat.models import Preferences, Share
from apps.chat.presets import model_choices
from apps.servers.models import Server, State
from tests.chat.conftest import told

pytestmark = pytest.mark.django_db


@pytest.fixture
def llama(caller_server: Server) -> Server:
    caller_server.kind = "llama-server"
    caller_server.save()
    return caller_server


@pytest.mark.parametrize("kind", ["openai", "litellm", "olla", "llama-swap"])
def test_a_draft_goes_to_no_server_whose_cache_is_not_known(
    alice: User, llama: Server, kind: str
) -> None:
    assert prefill.is_allowed(alice.pk, llama)
    llama.kind = kind
    assert not prefill.is_allowed(alice.pk, llama)


def test_a_switch_says_whether_drafts_are_sent(
    alice: User, bob: User, client: Client, llama: Server, settings: Any
) -> None:
    conversation = told(alice, "q", "a")
    chat, page = reverse("chat:conversation", args=[conversation.pk]), reverse("chat:preferences")
    client.force_login(alice)
    shown = client.get(chat).content.decode()
    assert "Processes your draft while you type" in shown
    assert "data-ahead-url" in shown
    client.post(page, {})
    assert not prefill.is_allowed(alice.pk, llama)
    assert prefill.is_allowed(bob.pk, llama)
    shown = client.get(chat).content.decode()
    assert "Processes your draft" not in shown
    assert "data-ahead-url" not in shown
    client.post(page, {"prefill_drafts": "on"})
    assert Preferences.objects.get().prefill_drafts
    settings.READ_AHEAD = False
    assert not prefill.is_allowed(alice.pk, llama)


def test_shares_are_listed_and_ended(alice: User, bob: User, client: Client) -> None:
    mine = sharing.share(alice, told(alice, "q", "a"))
    his = sharing.share(bob, told(bob, "q", "a"))
    client.force_login(alice)
    page = client.get(reverse("chat:preferences"), follow=True).content.decode()
    assert str(mine.token) in page
    assert str(his.token) not in page
    listed = client.get("/api/v1/shares").json()
    assert [share["token"] for share in listed] == [str(mine.token)]
    ended = client.post(reverse("chat:unshare", args=[mine.token]), {"back": "list"})
    assert ended.headers["location"] == "/settings/#shares"
    assert list(Share.objects.all()) == [his]


@pytest.mark.parametrize(("given", "holds"), [({}, False), ({"thinking": "on"}, True)])
def test_thoughts_are_shared_only_where_that_is_said(
    alice: User, client: Client, given: dict[str, str], holds: bool
) -> None:
    conversation = told(alice, "q", "a", reasoning="Secret thought")
    client.force_login(alice)
    page = client.post(reverse("chat:share", args=[conversation.pk]), given, follow=True)
    assert ("Secret thought" in page.content.decode()) == holds


def test_copies_of_who_was_disabled_are_gone(alice: User, bob: User, client: Client) -> None:
    share = sharing.share(bob, told(bob, "q", "a"))
    client.force_login(alice)
    address = reverse("chat:shared", args=[share.token])
    assert client.get(address).status_code == 200
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert client.get(address).status_code == 404


def test_one_hit_a_conversation() -> None:
    hits = [
        search.Hit(1, "Kettles", None, "", []),
        search.Hit(2, "Lamps", 9, "user", []),
        search.Hit(1, "Kettles", 5, "user", []),
        search.Hit(1, "Kettles", 3, "assistant", []),
    ]
    found = search.group_by_conversation(hits)
    assert [(hit.conversation, hit.message, hit.more) for hit in found] == [(1, 5, 2), (2, 9, 0)]


def test_only_what_can_answer_is_offered(llama: Server) -> None:
    for name, fields in {
        "Dead": {"state": State.UNREACHABLE},
        "Bad key": {"state": State.UNAUTHORIZED},
        "New": {"state": State.UNKNOWN},
    }.items():
        Server.objects.create(
            name=name, base_url=f"http://x/{name[0]}", checked_at=llama.checked_at, **fields
        )
    names = [server.name for server, _ in model_choices.list_models()]
    assert "New" in names
    assert not {"Dead", "Bad key"} & set(names)
    dead = Server.objects.get(name="Dead")
    assert dead in [server for server, _ in model_choices.list_models(keep=dead.pk)]
