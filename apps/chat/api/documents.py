"""Documents of projects over HTTP."""

from datetime import datetime
from typing import IO, Any, cast

from django.http import HttpRequest
from ninja import File, Router, Schema, Status
from ninja.files import UploadedFile

from apps.chat.knowledge import documents
from apps.chat.lookups import get_document, get_project
from apps.chat.models import Document, DocumentState, Passage
from apps.core.api import Page, page

router = Router()


class ProgressOut(Schema):
    done: int
    total: int | None
    """Pages while it is read, passages while they are embedded; null while unknown."""


class DocumentOut(Schema):
    id: int
    project: int
    name: str
    size: int
    """Bytes of the uploaded file, which is deleted once it was read."""
    state: DocumentState
    progress: ProgressOut | None
    """Null unless it is being read or embedded."""
    error: str
    """Why it failed; empty: it did not."""
    tokens: int | None
    """An estimate; null until it was read."""
    passages: int
    whole: bool
    """True if it stands whole in the prompts of new conversations."""
    created: datetime


class DocumentPatch(Schema):
    whole: bool


class PassageOut(Schema):
    position: int
    """From 0; the passages in order are the text of the document."""
    page: int | None
    heading: str
    text: str


def document_out(document: Document) -> DocumentOut:
    progress = None
    if document.state in {DocumentState.READING, DocumentState.EMBEDDING}:
        progress = ProgressOut(done=document.done, total=document.total or None)
    return DocumentOut(
        id=document.pk,
        project=document.project_id,
        name=document.name,
        size=document.size,
        state=DocumentState(document.state),
        progress=progress,
        error=document.error,
        tokens=document.tokens,
        passages=document.passage_count,
        whole=document.whole,
        created=document.created,
    )


def _passage_out(passage: Passage) -> PassageOut:
    return PassageOut(
        position=passage.position, page=passage.page, heading=passage.heading, text=passage.text
    )


@router.get("/projects/{int:pk}/documents", response=Page[DocumentOut])
def list_documents(
    request: HttpRequest, pk: int, limit: int = 100, after: str | None = None
) -> Any:
    mine = get_project(request, pk).documents.all()
    return page(mine, document_out, limit=limit, after=after)


@router.post("/projects/{int:pk}/documents", response={202: DocumentOut})
def add_document(request: HttpRequest, pk: int, file: File[UploadedFile]) -> Any:
    """Upload a PDF, DOCX, Markdown or UTF-8 text file. A worker reads and embeds it: `state`."""
    project = get_project(request, pk)
    document = documents.add(project, file.name or "", cast(IO[bytes], file))
    return Status(202, document_out(document))


@router.get("/documents/{int:pk}", response=DocumentOut)
def read_document(request: HttpRequest, pk: int) -> Any:
    return document_out(get_document(request, pk))


@router.get("/documents/{int:pk}/passages", response=Page[PassageOut])
def list_passages(request: HttpRequest, pk: int, limit: int = 100, after: str | None = None) -> Any:
    """Read the text of a document, passage by passage."""
    document = get_document(request, pk)
    documents.check_read(document)
    return page(document.passages.defer("vector"), _passage_out, limit=limit, after=after)


@router.patch("/documents/{int:pk}", response=DocumentOut)
def change_document(request: HttpRequest, pk: int, data: DocumentPatch) -> Any:
    """Have a document stand whole in the prompts of new conversations, or only be searched."""
    document = get_document(request, pk)
    documents.set_whole(document, data.whole)
    document.whole = data.whole
    return document_out(document)


@router.post("/documents/{int:pk}/retry", response={202: DocumentOut})
def retry_document(request: HttpRequest, pk: int) -> Any:
    """Read or embed a document again, for example after an embedding server was set."""
    document = get_document(request, pk)
    documents.retry(document)
    document.refresh_from_db()
    return Status(202, document_out(document))


@router.delete("/documents/{int:pk}", response={204: None})
def delete_document(request: HttpRequest, pk: int) -> Any:
    """Delete a document. Messages keep the passages that were sent with them."""
    documents.remove(get_document(request, pk))
    return Status(204, None)
