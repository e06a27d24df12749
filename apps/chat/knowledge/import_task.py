"""The durable task of a document: its file to passages, and these to vectors."""

import asyncio
import itertools
import json
from collections.abc import Iterator

import numpy as np

from apps.chat.knowledge import document_text, documents
from apps.chat.knowledge.chunking import Chunk, Page, split_pages
from apps.chat.knowledge.documents import BadDocument
from apps.chat.models import Document, DocumentState, Passage
from apps.core import sandbox
from apps.embeddings.errors import TextsTooLarge
from apps.embeddings.services import Preparation, Vectors, embed_prepared, identify
from apps.llm.client import close_clients
from apps.llm.errors import LLMError
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers import services as llm
from apps.servers.models import Use
from apps.work import services as work
from apps.work.errors import LeaseLost, TaskCancelled
from apps.work.models import TaskState
from apps.work.services import HeldTask

PREPARATION = Preparation(long_texts="cut")
REPORT_EVERY = 10  # pages
NO_EMBEDDINGS = (
    "No embedding server is set, so this document is not searched. Set a default for embeddings "
    "under Servers, then retry. A small document can stand whole in the prompt without one."
)
REASONS = {
    document_text.ENCRYPTED: "The file is password-protected. Upload an unprotected copy.",
    document_text.NO_TEXT_FILE: "This file type is not supported. Upload a PDF, DOCX, Markdown "
    "or UTF-8 text file.",
    document_text.TOO_LARGE: "The file is too long. Upload part of it.",
}


def run(held: HeldTask) -> None:
    """Read what was not read, then embed it: the handler of the task."""
    document = Document.objects.filter(pk=held.subject).first()
    if document is None:
        return
    try:
        if held.is_worn_out:
            raise BadDocument("The worker ended several times while reading it. Retry.")
        if not document.is_read:
            _read(held, document)
        _report(document, state=DocumentState.EMBEDDING, done=0, total=document.passage_count)
        _embed(held, document)
    except (BadDocument, LLMError, TextsTooLarge) as error:
        _fail(held, document, str(error))
    except llm.NoServer:
        _fail(held, document, NO_EMBEDDINGS)
    except (TaskCancelled, LeaseLost):
        raise
    except Exception:
        _report(document, state=DocumentState.FAILED, error=work.INTERNAL_ERROR)
        raise


def _fail(held: HeldTask, document: Document, reason: str) -> None:
    with held.fence():
        _report(document, state=DocumentState.FAILED, error=reason)
        held.end(TaskState.FAILED, reason)


def _report(document: Document, **values: object) -> None:
    Document.objects.filter(pk=document.pk).update(**values)


def _read(held: HeldTask, document: Document) -> None:
    _report(document, state=DocumentState.READING)
    try:
        most = documents.MAX_PASSAGES + 1  # the rest is not needed to refuse it
        chunks = list(itertools.islice(split_pages(_pages(held, document)), most))
    except (sandbox.Exceeded, json.JSONDecodeError) as error:
        raise BadDocument("The file takes too long to read, or is too long.") from error
    except sandbox.Busy as error:
        raise BadDocument(str(error)) from error
    except sandbox.Failed as error:
        reason = "The file could not be read. It may be damaged."
        raise BadDocument(REASONS.get(error.code, reason)) from error
    if not chunks:
        raise BadDocument("The file has no text. It may contain only images.")
    _store(held, document, chunks)


def _pages(held: HeldTask, document: Document) -> Iterator[Page]:
    lines = sandbox.lines(
        "apps.chat.knowledge.document_text", str(document.path), limits=document_text.LIMITS
    )
    try:
        total = json.loads(next(lines, b"null")) or 0
        for line in lines:
            number, text = json.loads(line)
            if number and number % REPORT_EVERY == 0:
                held.check()
                _report(document, done=number, total=total)
            yield Page(text, number)
    finally:
        lines.close()


def _store(held: HeldTask, document: Document, chunks: list[Chunk]) -> None:
    with held.fence():
        if Document.objects.select_for_update().filter(pk=document.pk).first() is None:
            return
        documents.store_passages(document, chunks)
    document.path.unlink(missing_ok=True)


def _embed(held: HeldTask, document: Document) -> None:
    passages = list(document.passages.defer("vector"))
    target = llm.default_target(Use.EMBEDDINGS)
    texts = [f"{passage.heading}\n\n{passage.text}".strip() for passage in passages]
    vectors, fingerprint = asyncio.run(_vectors(held, document, target, texts))
    for passage, vector in zip(passages, vectors, strict=True):
        passage.vector = np.asarray(vector, dtype="<f4").tobytes()
    with held.fence():
        Passage.objects.bulk_update(passages, ["vector"], batch_size=100)
        _report(document, state=DocumentState.READY, fingerprint=fingerprint, error="")
        held.end(TaskState.DONE)


async def _vectors(
    held: HeldTask, document: Document, target: llm.Target, texts: list[str]
) -> tuple[Vectors, str]:
    async def report(done: int, total: int) -> None:
        await in_db(held.report, done, total)
        await in_db(_report, document, done=done, total=total)

    try:
        embedder = await identify(target, lane=Lane.BATCH)
        prepared = await embed_prepared(
            embedder, texts, PREPARATION, lane=Lane.BATCH, progress=report
        )
        return prepared.vectors, embedder.fingerprint
    finally:
        await close_clients()
        await close_async_redis()
