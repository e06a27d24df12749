"""Documents of a project: adding, reading again, removing, and standing whole in prompts."""

import os
from collections.abc import Sequence
from typing import IO

from django.conf import settings
from django.db import transaction
from django.db.models import Sum

from apps.chat.errors import ChatError
from apps.chat.knowledge.chunking import Chunk
from apps.chat.models import Document, DocumentState, Passage, Project
from apps.chat.prompt.token_estimate import TOKENS_PER_BYTE, text_bytes
from apps.work import services as work

KIND = "chat.document"
MB = 1024**2
MAX_BYTES = 20 * MB
MAX_DOCUMENTS = 100
MAX_PASSAGES = 5_000  # of a project: search compares all of them
MAX_WHOLE_TOKENS = 20_000  # of a project


class BadDocument(ChatError):
    """A file cannot be added to a project, or a document cannot be changed so."""

    code = "bad_document"


class DocumentTooLarge(BadDocument):
    status = 413
    code = "too_large"


class NotRead(BadDocument):
    """A document has no text yet, or none at all."""

    status = 409
    code = "not_read"


def add(project: Project, name: str, file: IO[bytes]) -> Document:
    """Store a file and queue its reading.

    Raises:
        BadDocument: it is empty, or the project or its owner has too many.
        DocumentTooLarge
    """
    name = clean_name(name)
    data = file.read(MAX_BYTES + 1)
    if not data:
        raise BadDocument(f"“{name}” is empty.")
    if len(data) > MAX_BYTES:
        raise DocumentTooLarge(f"“{name}” is larger than {MAX_BYTES // MB} MB. Upload part of it.")
    check_room(project, name, len(data))
    document = Document(owner=project.owner, project=project, name=name, size=len(data))
    _write(document, data)
    try:
        with transaction.atomic():
            document.save()
            work.enqueue(KIND, document.pk, owner=project.owner)
    except BaseException:
        document.path.unlink(missing_ok=True)
        raise
    return document


def clean_name(name: str) -> str:
    return " ".join(name.split())[:255] or "file"


def check_room(project: Project, name: str, size: int) -> None:
    """Check the limits of a project and its owner before a document is added.

    Raises:
        BadDocument: there is no room for it.
    """
    if project.documents.count() >= MAX_DOCUMENTS:
        raise BadDocument(f"“{project}” has {MAX_DOCUMENTS} documents. That is the limit.")
    mine = Document.objects.filter(owner=project.owner)
    total = mine.aggregate(size=Sum("size"))["size"] or 0
    if total + size > settings.ATTACHMENTS_MB * MB:
        raise BadDocument(
            f"“{name}” was not kept. Your documents have {total // MB} MB. The limit is "
            f"{settings.ATTACHMENTS_MB} MB. Remove some."
        )


def store_passages(document: Document, chunks: Sequence[Chunk]) -> None:
    """Give a stored document its text, in place of any that it had.

    Raises:
        BadDocument: the project would have too many passages.
    """
    others = Passage.objects.filter(document__project=document.project_id)
    if others.exclude(document=document).count() + len(chunks) > MAX_PASSAGES:
        raise BadDocument(
            f"The documents of the project would have more than {MAX_PASSAGES:,} passages. That "
            "is the limit. Remove some, or upload part of this one."
        )
    document.passages.all().delete()
    Passage.objects.bulk_create(
        [
            Passage(
                document=document,
                position=position,
                page=chunk.page,
                heading=chunk.heading,
                text=chunk.text,
            )
            for position, chunk in enumerate(chunks)
        ],
        batch_size=500,
    )
    size = sum(text_bytes(chunk.text) for chunk in chunks)
    document.tokens, document.passage_count = round(size * TOKENS_PER_BYTE), len(chunks)
    document.save(update_fields=["tokens", "passage_count"])


def _write(document: Document, data: bytes) -> None:
    path = document.path
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


@transaction.atomic
def retry(document: Document) -> None:
    """Queue the reading or embedding of a document again, if it is not under way."""
    if work.enqueue(KIND, document.pk, owner=document.owner) is not None:
        Document.objects.filter(pk=document.pk).update(
            state=DocumentState.WAITING, error="", done=0, total=0
        )


@transaction.atomic
def remove(document: Document) -> None:
    """Delete a document. Messages keep the passages that were sent with them."""
    work.discard(KIND, [document.pk])
    document.delete()


def set_whole(document: Document, whole: bool) -> None:
    """Have a document stand whole in the prompts of new chats, or not.

    Raises:
        BadDocument: it was not read yet, or the project has too many tokens of such.
    """
    if whole:
        if document.tokens is None:
            raise BadDocument(f"“{document}” was not read yet. Try again when it is.")
        others = Document.objects.filter(project=document.project_id, whole=True)
        total = others.exclude(pk=document.pk).aggregate(tokens=Sum("tokens"))["tokens"] or 0
        if total + document.tokens > MAX_WHOLE_TOKENS:
            raise BadDocument(
                f"The whole documents would have about {total + document.tokens:,} tokens. The "
                f"limit is {MAX_WHOLE_TOKENS:,}. “{document}” is searched instead."
            )
    Document.objects.filter(pk=document.pk).update(whole=whole)


def check_read(document: Document) -> None:
    """Refuse a document whose text is not known.

    Raises:
        NotRead
    """
    if not document.is_read:
        reason = document.error or "It is being read. Try again when its state is “ready”."
        raise NotRead(f"“{document}” has no text. {reason}")


def text_of(document: Document) -> str:
    passages = Passage.objects.filter(document=document)
    return "\n\n".join(passages.values_list("text", flat=True))
