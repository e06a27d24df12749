"""Search over everything that was said, in the database that the tests run on."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse

from apps.chat.conversation_list import library, search
from apps.chat.conversations import branches
from apps.chat.models import Conversation, Message, Role
from tests.chat.conftest import told


def found(owner: User, text: str) -> list[str]:
    """The messages found, whole: each database cuts its snippets its own way."""
    hits = [hit.message for hit in search.find(owner, text) if hit.message is not None]
    return [Message.objects.get(pk=pk).content for pk in hits]


@pytest.fixture
def kettles(alice: User) -> Conversation:
    return told(
        alice, "Which kettle boils fastest?", "The one with the most watts, naturally.",
        "And the *cheapest* one?", "Größe and price go together.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("kettle", "Which kettle"),
        ("ket", "Which kettle"),  # a beginning is enough
        ("boils WHICH", "Which kettle"),  # in any order, in any case
        ("watts, naturally", "The one"),
        ("cheapest", "And the"),
        ("größe", "Größe"),
        ("fast-est", None),
        ("kettle watts", None),  # all the words, in one message
        ("toaster", None),
    ],
)
def test_words(alice: User, kettles: Conversation, text: str, begins: str | None) -> None:
    hits = found(alice, text)
    assert len(hits) == (begins is not None)
    assert begins is None or hits[0].startswith(begins)


@pytest.mark.parametrize(
    "text",
    ["", "  ", "'", '"', "* OR", "NEAR(", 'x" OR "y', "\\", ":*", "a'b", "&|!", "\0x", "-", "%s"],
)
def test_search_takes_any_text(alice: User, kettles: Conversation, text: str) -> None:
    assert all(isinstance(hit, str) for hit in found(alice, text))


def test_the_words_are_marked(alice: User, kettles: Conversation) -> None:
    (hit,) = search.find(alice, "which fast")
    assert [piece.text for piece in hit.snippet if piece.is_hit] == ["Which", "fastest"]
    assert (hit.role, hit.title, hit.conversation) == ("user", "Kettles", kettles.pk)


def test_a_snippet_has_room_for_what_was_sought(alice: User) -> None:
    told(alice, " ".join(f"word{number}" for number in range(200)))
    (hit,) = search.find(alice, "word120")
    assert "word120" in [piece.text for piece in hit.snippet if piece.is_hit]
    assert len("".join(piece.text for piece in hit.snippet).split()) <= search.SNIPPET_WORDS + 2


def test_titles_come_first(alice: User, kettles: Conversation) -> None:
    told(alice, "Something about kettles", "Yes")
    titles = [hit for hit in search.find(alice, "kettles") if hit.message is None]
    assert len(titles) == 2
    assert search.find(alice, "kettles")[:2] == titles


def test_a_long_conversation_leaves_places_to_others(alice: User) -> None:
    told(alice, "A samovar?", "A samovar.")
    told(alice, *(f"Samovar {number}" for number in range(60)))
    assert found(alice, "samovar") == [
        "Samovar 59", "Samovar 58", "Samovar 57", "A samovar.", "A samovar?"
    ]  # fmt: skip


def test_search_leaves_out_conversations_of_others(bob: User, kettles: Conversation) -> None:
    assert search.find(bob, "kettle") == []


def test_search_follows_changed_and_deleted_messages(alice: User, kettles: Conversation) -> None:
    Message.objects.filter(role=Role.ASSISTANT).update(content="Samovar")
    assert len(found(alice, "samovar")) == 2
    assert found(alice, "watts") == []
    kettles.messages.all().delete()
    assert found(alice, "samovar") == []


def test_search_leaves_out_deleted_messages(alice: User, kettles: Conversation) -> None:
    last = kettles.messages.get(content__startswith="And the")
    branches.delete(last)
    assert found(alice, "cheapest") == []
    branches.restore(Message.objects.get(pk=last.pk))
    assert len(found(alice, "cheapest")) == 1
    library.delete(Conversation.objects.filter(pk=kettles.pk))
    assert search.find(alice, "kettle") == []


def test_a_lost_index_is_made_again(alice: User, kettles: Conversation) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL keeps its index when a table changes.")
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER chat_message_words_insert")
    kettles.messages.create(role=Role.USER, content="Afterwards")
    assert found(alice, "afterwards") == []
    search.create_index(connection)
    assert len(found(alice, "afterwards")) == 1


def test_a_very_long_text(alice: User) -> None:
    told(alice, " ".join(f"word{n}" for n in range(60_000)), "ok")
    assert len(found(alice, "word17")) == 1


def test_the_page(
    alice: User, browser: Client, bobs_browser: Client, kettles: Conversation
) -> None:
    address = reverse("chat:search")
    html = browser.get(address, {"q": "kettle"}).content.decode()
    question = kettles.messages.first()
    assert "<mark>kettle</mark>" in html
    assert f"?message={question.pk}#question-{question.pk}" in html
    assert "No chats contain" in browser.get(address, {"q": "toaster"}).content.decode()
    assert "<mark>" not in bobs_browser.get(address, {"q": "kettle"}).content.decode()


def test_search_results_escape_html(alice: User, browser: Client) -> None:
    told(alice, "<script>alert(1)</script> kettle", "x")
    html = browser.get(reverse("chat:search"), {"q": "kettle"}).content.decode()
    assert "<script>" not in html


def test_a_hit_in_another_branch(alice: User, browser: Client, demo_server: object) -> None:
    conversation = told(alice, "Hello", "First answer")
    question = conversation.messages.first()
    other = conversation.messages.create(parent=question, role=Role.ASSISTANT, content="Other")
    address = reverse("chat:conversation", args=[conversation.pk])
    assert "another branch" in browser.get(address, {"message": other.pk}).content.decode()
    assert "another branch" not in browser.get(address, {"message": question.pk}).content.decode()
    assert "another branch" not in browser.get(address, {"message": "x"}).content.decode()


def test_over_http(alice: User, api: Client, bobs_api: Client, kettles: Conversation) -> None:
    (hit,) = api.get("/api/v1/search", {"q": "boils"}).json()
    assert hit["snippet"].startswith("Which kettle boils fastest")
    assert bobs_api.get("/api/v1/search", {"q": "boils"}).json() == []
    assert api.get("/api/v1/search").status_code == 422
