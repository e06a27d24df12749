"""Documents of a project: from the upload to a cited answer, and their limits."""

import asyncio
import zipfile
from io import BytesIO
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connections
from django.test import AsyncClient, Client
from django.urls import reverse

from apps.chat.conversations import projects, services
from apps.chat.knowledge import documents
from apps.chat.knowledge.documents import KIND, BadDocument
from apps.chat.knowledge.whole import freeze
from apps.chat.models import Conversation, Document, DocumentState, Message, Project
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.work import services as work
from tests.chat.conftest import ask_in, events_of
from tests.chat.tools.tool_server import ToolServer, say

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}
INVOICES = "# Archiving\n\nInvoices are kept for ten years.\n\n# Paper\n\nOriginals are scanned."


def docx(*paragraphs: tuple[str, str]) -> bytes:
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    body = "".join(
        f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'
        for style, text in paragraphs
    )
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(
            "word/document.xml",
            f'<w:document xmlns:w="{word}"><w:body>{body}</w:body></w:document>',
        )
    return file.getvalue()


@pytest.fixture
def project(alice: User) -> Project:
    return projects.create(alice, "Invoices")


def add(project: Project, name: str, data: bytes | str) -> Document:
    """Add a document and run its task."""
    data = data.encode() if isinstance(data, str) else data
    document = documents.add(project, name, BytesIO(data))
    work.run_subject(KIND, document.pk)
    document.refresh_from_db()
    return document


def add_in_thread(project: Project) -> Document:
    try:
        return add(project, "handbook.md", INVOICES)
    finally:
        connections.close_all()


def test_a_document_becomes_passages_with_vectors(
    project: Project, embedding_server: Server
) -> None:
    document = add(project, "handbook.md", INVOICES)
    assert (document.state, document.error) == (DocumentState.READY, "")
    assert [passage.heading for passage in document.passages.all()] == ["Archiving", "Paper"]
    assert all(passage.vector for passage in document.passages.all())
    assert not document.path.exists()


def test_a_word_document_is_read_with_its_headings(
    project: Project, embedding_server: Server
) -> None:
    document = add(project, "law.docx", docx(("Heading2", "Periods"), ("Normal", "Eight years.")))
    passage = document.passages.get()
    assert (passage.heading, passage.text) == ("Periods", "## Periods\n\nEight years.")


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"PK\x03\x04 no archive", "damaged"), (b"a\0b", "not supported"), (b"  ", "no text")],
)
def test_a_file_that_cannot_be_read_fails_with_its_reason(
    project: Project, data: bytes, reason: str
) -> None:
    document = add(project, "file", data)
    assert document.state == DocumentState.FAILED
    assert reason in document.error


def test_without_an_embedding_server_a_document_can_only_stand_whole(
    project: Project, server: Server
) -> None:
    document = add(project, "handbook.md", INVOICES)
    assert document.state == DocumentState.FAILED
    assert "No embedding server" in document.error
    documents.set_whole(document, True)
    conversation = services.open_conversation(owner=project.owner, project=project)
    freeze(conversation)
    assert conversation.documents is not None
    text = conversation.documents.text
    assert "Invoices are kept for ten years." in text
    documents.remove(document)
    conversation = Conversation.objects.get(pk=conversation.pk)
    assert conversation.documents is not None
    assert conversation.documents.text == text


def test_too_large_whole_documents_are_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MAX_WHOLE_TOKENS", 5)
    document = add(project, "handbook.md", INVOICES)
    with pytest.raises(BadDocument, match="limit is 5"):
        documents.set_whole(document, True)


def test_too_many_passages_are_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_PASSAGES", 1)
    assert "more than 1 passages" in add(project, "handbook.md", INVOICES).error


def test_the_page_adds_shows_and_deletes_documents(
    browser: Client, alice: User, project: Project, embedding_server: Server
) -> None:
    address = reverse("chat:documents", args=[project.pk])
    file = SimpleUploadedFile("handbook.md", INVOICES.encode())
    added = browser.post(address, {"file": file}, headers=HTMX).content.decode()
    document = Document.objects.get()
    assert "Waiting for a worker" in added
    work.run_subject(KIND, document.pk)
    assert "2 passages" in browser.get(address, headers=HTMX).content.decode()
    whole = reverse("chat:whole_document", args=[document.pk])
    switched = browser.post(whole, {"whole": "on"}, headers=HTMX).content.decode()
    assert f"Always in the prompt, about {document_tokens()} tokens" in switched
    text = browser.get(reverse("chat:document", args=[document.pk])).content.decode()
    assert 'id="passage-1"' in text
    browser.post(reverse("chat:remove_document", args=[document.pk]), headers=HTMX)
    assert not Document.objects.exists()


def document_tokens() -> int:
    return Document.objects.get().tokens or 0


def test_an_empty_file_is_refused(browser: Client, project: Project) -> None:
    file = SimpleUploadedFile("empty.md", b"")
    address = reverse("chat:documents", args=[project.pk])
    refused = browser.post(address, {"file": file}, headers=HTMX)
    assert refused.status_code == 422
    assert "is empty" in refused.content.decode()


def test_documents_of_others_are_not_there(bob: User, project: Project) -> None:
    document = add(project, "handbook.md", INVOICES)
    client = Client()
    client.force_login(bob)
    assert client.get(reverse("chat:documents", args=[project.pk])).status_code == 404
    assert client.get(reverse("chat:document", args=[document.pk])).status_code == 404
    for name in ("remove_document", "retry_document", "whole_document"):
        assert client.post(reverse(f"chat:{name}", args=[document.pk])).status_code == 404
    assert Document.objects.filter(pk=document.pk, whole=False).exists()


def test_a_deleted_project_takes_the_files_with_it(project: Project) -> None:
    document = documents.add(project, "handbook.md", BytesIO(INVOICES.encode()))
    assert document.path.exists()
    project.delete()
    assert not document.path.exists()


def open_in(project: Project, server: Server) -> Conversation:
    return services.open_conversation(owner=project.owner, project=project, server=server)


def sent_to(caller: ToolServer) -> list[Any]:
    """The messages of each request that streamed an answer."""
    return [request["messages"] for request in caller.asked if request.get("stream")]


async def test_an_answer_cites_a_passage_that_was_sent_with_its_question(
    alice_api: AsyncClient,
    alice_browser: AsyncClient,
    project: Project,
    embedding_server: Server,
    caller: ToolServer,
    caller_server: Server,
) -> None:
    document = await asyncio.to_thread(add_in_thread, project)
    conversation = await in_db(open_in, project, caller_server)
    caller.script[:] = [say("Ten years [1]."), say("Scanned.")]
    answer = await ask_in(alice_api, conversation.pk, "How long?")
    await events_of(alice_api, answer)
    second = await ask_in(alice_api, conversation.pk, "And paper?")
    await events_of(alice_api, second)
    first, later = (found for found in sent_to(caller) if "<passage" in str(found[-1]))
    assert "Invoices are kept for ten years." in first[-1]["content"]
    assert later[: len(first)] == first
    shown = await alice_browser.get(reverse("chat:answer", args=[answer]))
    html = shown.content.decode()
    assert f'href="/chat/documents/{document.pk}/#passage-' in html
    assert 'class="sources"' in html


async def test_a_turn_in_a_project_finds_its_prefix_cached(
    alice_api: AsyncClient, project: Project, embedding_server: Server, server: Server
) -> None:
    await asyncio.to_thread(add_in_thread, project)
    conversation = await in_db(open_in, project, server)
    prefix = 0
    for question in ("How long are they kept?", "What happens to paper?", "Who scans it?"):
        events = await events_of(alice_api, await ask_in(alice_api, conversation.pk, question))
        usage = events[-2]
        if prefix:
            assert usage["cached_tokens"] >= 0.85 * prefix
        prefix = usage["prompt_tokens"]
    questions = Message.objects.filter(conversation=conversation, role="user")
    assert all([bool(question.passages) async for question in questions])
    assert prefix > 300


async def test_an_answer_says_that_the_documents_were_not_searched(
    alice_api: AsyncClient,
    alice_browser: AsyncClient,
    project: Project,
    embedding_server: Server,
    caller: ToolServer,
    caller_server: Server,
) -> None:
    await asyncio.to_thread(add_in_thread, project)
    await sync_to_async(embedding_server.delete)()
    conversation = await in_db(open_in, project, caller_server)
    answer = await ask_in(alice_api, conversation.pk, "How long?")
    await events_of(alice_api, answer)
    shown = await alice_browser.get(reverse("chat:answer", args=[answer]))
    assert "The documents were not searched." in shown.content.decode()
