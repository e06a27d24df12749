"""A source that an answer cites, as the side panel shows it."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.chat.conversations import projects, services
from apps.chat.knowledge import documents
from apps.chat.knowledge.cited import CONTEXT_CHARACTERS
from apps.chat.knowledge.passages import Findings, SentPassage, Source
from apps.chat.models import Document, Message, Passage, Role
from tests.markup import visible_text

pytestmark = pytest.mark.django_db

TEXTS = ("word " * 200, "Kept for ten <years>. Then filed.", "Then they are deleted. " * 40)


@pytest.fixture
def document(alice: User) -> Document:
    project = projects.create(alice, "Invoices")
    document = Document.objects.create(owner=alice, project=project, name="Law.pdf", size=1)
    for position, text in enumerate(TEXTS):
        Passage.objects.create(
            document=document, position=position, text=text, page=31, heading="Archiving"
        )
    return document


@pytest.fixture
def answer(alice: User, document: Document) -> Message:
    """Cites the passage in the middle as 1 and the last one as 3; 2 was sent and is not cited."""
    conversation = services.open_conversation(owner=alice, project=document.project)
    sources = [
        Source(number, document.pk, position, "Law.pdf", 31)
        for number, position in ((3, 2), (2, 0), (1, 1))
    ]
    sent = [SentPassage(source, TEXTS[source.position]) for source in sources]
    question = Message.objects.create(
        conversation=conversation,
        role=Role.USER,
        content="How long?",
        passages=Findings(sent).to_json(),
    )
    return Message.objects.create(
        conversation=conversation,
        role=Role.ASSISTANT,
        parent=question,
        content="Ten years [1]. Then not [3].",
        passages=Findings(sources=sources, found=[2, 1]).to_json(),
    )


def address(answer: Message, number: int) -> str:
    return reverse("chat:source", args=[answer.pk, number])


def test_a_source_shows_its_passage_between_the_text_around_it(
    browser: Client, answer: Message, document: Document
) -> None:
    html = browser.get(address(answer, 1)).content.decode()
    shown = visible_text(html)
    assert "<mark>Kept for ten &lt;years&gt;.</mark> Then filed." in html
    assert "Page 31 · Archiving" in shown
    assert "…word word" in shown
    assert "deleted." in shown
    assert len(shown) < 2 * CONTEXT_CHARACTERS + 300
    assert f"/chat/documents/{document.pk}/#passage-1" in html


def test_arrows_lead_to_the_other_cited_sources(browser: Client, answer: Message) -> None:
    html = browser.get(address(answer, 3)).content.decode()
    assert html.count(f'hx-get="{address(answer, 1)}"') == 2
    assert address(answer, 2) not in html


def test_a_deleted_document_leaves_the_passage_that_was_sent(
    browser: Client, answer: Message, document: Document
) -> None:
    documents.remove(document)
    shown = visible_text(browser.get(address(answer, 1)).content.decode())
    assert "This document was deleted." in shown
    assert "Kept for ten" in shown
    assert "Open page" not in shown


def test_what_was_found_and_is_not_cited_can_be_read(browser: Client, answer: Message) -> None:
    thread = browser.get(reverse("chat:answer", args=[answer.pk])).content.decode()
    assert "Found 2 passages in 1 document" in visible_text(thread)
    assert "none cited" not in thread
    html = browser.get(address(answer, 2)).content.decode()
    assert "<mark>" not in html
    assert html.count(f'hx-get="{address(answer, 1)}"') == 2


def test_an_answer_that_cites_nothing_says_so(browser: Client, answer: Message) -> None:
    Message.objects.filter(pk=answer.pk).update(content="I do not know.")
    thread = browser.get(reverse("chat:answer", args=[answer.pk])).content.decode()
    assert "Found 2 passages in 1 document, none cited" in visible_text(thread)


def test_what_is_cited_as_a_whole_is_not_listed_twice(browser: Client, answer: Message) -> None:
    Message.objects.filter(pk=answer.pk).update(content="Ten [1, 2, 3].")
    thread = browser.get(reverse("chat:answer", args=[answer.pk])).content.decode()
    assert "Found 2 passages" not in visible_text(thread)


def test_a_number_without_a_source_is_not_there(browser: Client, answer: Message) -> None:
    assert browser.get(address(answer, 4)).status_code == 404


def test_sources_of_others_are_not_there(bob: User, answer: Message) -> None:
    client = Client()
    client.force_login(bob)
    assert client.get(address(answer, 1)).status_code == 404
