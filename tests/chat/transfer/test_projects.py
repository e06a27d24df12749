"""Projects and documents in an export, and what comes back of them."""

import asyncio
import io
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.chat.conversations import projects
from apps.chat.knowledge import documents
from apps.chat.knowledge.documents import KIND
from apps.chat.models import Conversation, Document, DocumentState, Project
from apps.chat.transfer import exports, write
from apps.chat.transfer.download import download_all
from apps.chat.transfer.read import BadFile
from apps.servers.models import Server
from apps.work import services as work
from tests.chat.conftest import told

pytestmark = pytest.mark.django_db(transaction=True)

INVOICES = "# Archiving\n\nInvoices are kept for ten years.\n\n# Paper\n\nOriginals are scanned."


@pytest.fixture
def project(alice: User, server: Server) -> Project:
    """A project with instructions, a chat and a document that was read."""
    project = projects.create(alice, "Invoices")
    projects.change(project, instructions="Be exact.")
    document = documents.add(project, "handbook.md", io.BytesIO(INVOICES.encode()))
    work.run_subject(KIND, document.pk)
    document.refresh_from_db()
    documents.set_whole(document, True)
    documents.add(project, "unread.md", io.BytesIO(b"Not read yet"))
    conversation = told(alice, "How long?", "Ten years.")
    Conversation.objects.filter(pk=conversation.pk).update(project=project)
    return project


def exported(owner: User, form: str = "json") -> bytes:
    response: Any = download_all(owner, form)

    async def read() -> bytes:
        return b"".join([chunk async for chunk in response.streaming_content])

    return asyncio.run(read())


def import_value(owner: User, value: Any) -> write.Result:
    return write.import_file(owner, io.BytesIO(json.dumps(value).encode()))


def texts(project: Project) -> list[tuple[str, str]]:
    """Name and passages of each document that was read."""
    found = project.documents.exclude(tokens=None)
    return [(document.name, documents.text_of(document)) for document in found]


def test_projects_documents_and_their_chats_come_back(
    project: Project, bob: User, embedding_server: Server
) -> None:
    result = write.import_file(bob, io.BytesIO(exported(project.owner)))
    assert (result.conversations, result.documents) == (1, 1)
    copy = Project.objects.get(owner=bob)
    assert copy.system_prompt is not None
    assert (copy.name, copy.system_prompt.text) == ("Invoices", "Be exact.")
    assert texts(copy) == texts(project)
    assert Conversation.objects.get(owner=bob).project == copy
    document = copy.documents.get()
    assert document.whole
    assert document.state == DocumentState.WAITING
    work.run_subject(KIND, document.pk)
    document.refresh_from_db()
    assert (document.state, document.error) == (DocumentState.READY, "")
    headings = [list(p.documents.first().passages.values_list("heading")) for p in (copy, project)]  # type: ignore[union-attr]
    assert headings[0] == headings[1]


def test_importing_twice_adds_nothing(project: Project, bob: User) -> None:
    data = exported(project.owner)
    write.import_file(bob, io.BytesIO(data))
    again = write.import_file(bob, io.BytesIO(data))
    assert (again.conversations, again.known, again.documents) == (0, 1, 0)
    assert Document.objects.filter(owner=bob).count() == 1


def test_a_project_that_is_there_keeps_its_instructions(project: Project, bob: User) -> None:
    mine = projects.create(bob, "Invoices")
    projects.change(mine, instructions="Be kind.")
    write.import_file(bob, io.BytesIO(exported(project.owner)))
    mine.refresh_from_db()
    assert mine.system_prompt is not None
    assert mine.system_prompt.text == "Be kind."
    assert mine.documents.count() == 1


def test_only_the_export_of_everything_has_projects(project: Project) -> None:
    assert "projects" not in exported(project.owner, "md").decode()
    chat = json.loads(exports.export_one(Conversation.objects.get(), "json"))
    assert chat["project"] == "Invoices"
    assert "documents" not in chat


def test_nothing_is_left_of_an_import_that_fails(
    project: Project, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = json.loads(exported(project.owner))
    value["conversations"].append({"messages": [{"id": 1}], "title": "Broken"})
    with pytest.raises(BadFile, match="Broken"):
        import_value(bob, value)
    monkeypatch.setattr(documents, "MAX_PASSAGES", 1)
    with pytest.raises(BadFile, match="more than 1 passages"):
        import_value(bob, json.loads(exported(project.owner)))
    assert not Project.objects.filter(owner=bob).exists()
    assert not Document.objects.filter(owner=bob).exists()


@pytest.mark.parametrize(
    "broken",
    [
        {"name": ""},
        {"name": "a", "documents": 5},
        {"name": "a", "documents": ["text"]},
        {"name": "a", "documents": [{"passages": [{"page": 1}]}]},
        {"name": "a", "documents": [{"passages": [{"text": ""}] * 50_001}]},
    ],
)
def test_a_broken_project_is_named(alice: User, broken: dict[str, Any]) -> None:
    with pytest.raises(BadFile, match=r"^Project 1 .*could not be read"):
        import_value(alice, {"projects": [broken], "conversations": []})
    assert not Project.objects.exists()


def test_hostile_passages_are_cut_and_stored(alice: User) -> None:
    passages = [{"text": "x\x00\ud800" + "y" * 9_000, "page": -4}, {"text": "z", "page": True}]
    document = {"name": "a\x00\nb", "passages": passages, "whole": "yes"}
    value = {"projects": [{"name": "n" * 300, "documents": [document]}], "conversations": []}
    assert import_value(alice, value).documents == 1
    found = Document.objects.get()
    assert len(found.project.name) == projects.NAME_LENGTH
    assert max(len(passage.text) for passage in found.passages.all()) <= 1200
    assert set(found.passages.values_list("page", flat=True)) == {None}


def test_the_page_says_how_many_documents_came(project: Project, bob: User, client: Client) -> None:
    client.force_login(bob)
    file = io.BytesIO(exported(project.owner))
    file.name = "export.json"
    page = client.post("/chat/import/", {"file": file}).content.decode()
    assert "1 document imported and queued for embedding." in " ".join(page.split())
