"""The list of conversations: pins, archive, tags, bulk, Undo."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from apps.chat.conversation_list import library
from apps.chat.conversations import services
from apps.chat.models import Conversation, Tag
from apps.servers.models import Server
from tests.chat.conftest import told


def titles(client: Client, **view: str) -> list[str]:
    html = client.get(reverse("chat:older_chats"), view).content.decode()
    return [part.split("</span>")[0].split(">")[1] for part in html.split('id="listed-')[1:]]


@pytest.fixture
def three(alice: User) -> list[Conversation]:
    return [services.open_conversation(owner=alice, title=title) for title in ("A", "B", "C")]


def test_pins_come_first(browser: Client, three: list[Conversation]) -> None:
    assert titles(browser) == ["C", "B", "A"]
    browser.post(reverse("chat:pin", args=[three[0].pk]))
    assert titles(browser) == ["A", "C", "B"]
    browser.post(reverse("chat:pin", args=[three[0].pk]))
    assert titles(browser) == ["C", "B", "A"]


def test_the_archive(browser: Client, three: list[Conversation], demo_server: Server) -> None:
    shown = browser.post(reverse("chat:archive", args=[three[1].pk]), follow=True)
    assert "“B” archived." in shown.content.decode()
    assert titles(browser) == ["C", "A"]
    assert titles(browser, archived="1") == ["B"]


def test_tags(browser: Client, three: list[Conversation]) -> None:
    address = reverse("chat:set_tags", args=[three[0].pk])
    browser.post(address, {"tags": " work ,  deep  ideas, work,"})
    assert [tag.name for tag in three[0].tags.all()] == ["deep ideas", "work"]
    tag = Tag.objects.get(name="work")
    assert titles(browser, tag=str(tag.pk)) == ["A"]
    browser.post(address, {"tags": "ideas"})
    assert [tag.name for tag in Tag.objects.all()] == ["ideas"]  # unused ones are forgotten


@pytest.mark.parametrize(
    ("tags", "sentence"),
    [
        ("x" * 41, "is too long. The limit is 40"),
        (",".join(map(str, range(21))), "A chat can have up to 20 tags. You entered 21."),
    ],
)
def test_tags_page_refuses_bad_tags_with_a_sentence(
    browser: Client,
    three: list[Conversation],
    demo_server: Server,
    tags: str,
    sentence: str,
) -> None:
    address = reverse("chat:set_tags", args=[three[0].pk])
    assert sentence in browser.post(address, {"tags": tags}, follow=True).content.decode()
    assert not Tag.objects.exists()


def test_bulk(browser: Client, three: list[Conversation], demo_server: Server) -> None:
    ids = [three[0].pk, three[2].pk]
    address = reverse("chat:bulk")
    browser.post(address, {"id": ids, "action": "tag", "tags": "work"})
    assert set(Tag.objects.get().conversations.values_list("pk", flat=True)) == set(ids)
    browser.post(address, {"id": ids, "action": "archive"})
    assert titles(browser) == ["B"]
    browser.post(address, {"id": ids, "action": "unarchive"})
    deleted = browser.post(address, {"id": ids, "action": "delete"}, follow=True)
    assert "2 chats deleted." in deleted.content.decode()
    assert titles(browser) == ["B"]
    back = browser.post(reverse("chat:undo", args=[ids[0]]), follow=True)
    assert "2 chats restored." in back.content.decode()
    assert titles(browser) == ["C", "B", "A"]


def test_bulk_without_anything(
    browser: Client,
    three: list[Conversation],
    demo_server: Server,
) -> None:
    said = browser.post(reverse("chat:bulk"), {"action": "delete"}, follow=True)
    assert "Select at least one chat." in said.content.decode()
    said = browser.post(reverse("chat:bulk"), {"id": three[0].pk, "action": "x"}, follow=True)
    assert "Choose an action" in said.content.decode()


def test_bulk_leaves_others_alone(bobs_browser: Client, three: list[Conversation]) -> None:
    bobs_browser.post(reverse("chat:bulk"), {"id": [c.pk for c in three], "action": "delete"})
    assert Conversation.objects.filter(deleted_at=None).count() == 3


def test_only_its_owner_can_bring_it_back(
    alice: User, bobs_browser: Client, three: list[Conversation]
) -> None:
    library.delete(Conversation.objects.owned_by(alice))
    assert bobs_browser.post(reverse("chat:undo", args=[three[0].pk])).status_code == 404


def test_over_http(api: Client, three: list[Conversation]) -> None:
    address = f"/api/v1/conversations/{three[0].pk}"
    changed = api.patch(
        address, {"pinned": True, "tags": ["work"]}, content_type="application/json"
    ).json()
    assert (changed["pinned"], changed["archived"], changed["tags"]) == (True, False, ["work"])
    listed = api.get("/api/v1/conversations").json()["items"]
    assert [item["tags"] for item in listed] == [[], [], ["work"]]
    bad = api.patch(address, {"tags": ["x" * 50]}, content_type="application/json")
    assert (bad.status_code, bad.json()["code"]) == (422, "bad_tags")


def test_a_thousand_conversations(
    alice: User, browser: Client, demo_server: Server,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:  # fmt: skip
    Conversation.objects.bulk_create(
        [Conversation(owner=alice, title=f"Number {n}") for n in range(1000)]
    )
    shown = told(alice, "Hello", "Hi")
    with django_assert_num_queries(17, exact=True):
        html = browser.get(reverse("chat:conversation", args=[shown.pk])).content.decode()
    assert html.count('id="listed-') == 50
