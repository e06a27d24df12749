"""Finds the passages for a question before its answer is requested, and keeps them with it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apps.chat.knowledge import documents, ranking
from apps.chat.knowledge.import_task import PREPARATION
from apps.chat.knowledge.passages import Findings, SentPassage, Source
from apps.chat.models import Conversation, Document, DocumentState, Message, Passage
from apps.chat.prompt.branch import branch_before
from apps.chat.prompt.token_estimate import TOKENS_PER_BYTE, text_bytes
from apps.core.models import OwnedQuerySet
from apps.embeddings.errors import TextsTooLarge
from apps.embeddings.services import Embedder, Vectors, embed_prepared, identify
from apps.llm.errors import LLMError
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.servers import services as llm
from apps.servers.models import Use

SECONDS = 20.0  # the answer then comes without passages
QUESTION_CHARACTERS = 2_000
SLOW = "The embedding server took too long."
CHANGED = "The embedding model has changed. The documents are being embedded again."


@dataclass(frozen=True)
class _Question:
    pk: int
    text: str
    project: int
    whole: frozenset[int]
    """Documents that stand in the prompt already."""
    max_bytes: int | None
    sources: Sequence[Source]
    """Of its branch until now."""


def is_needed(conversation: Conversation) -> bool:
    """Return True if messages of a conversation are searched for."""
    return conversation.project_id is not None and _searchable(conversation.project_id).exists()


def _searchable(project: int) -> OwnedQuerySet[Document]:
    return Document.objects.filter(project=project, state=DocumentState.READY)


async def add_passages(answer_id: int) -> None:
    """Find passages for the question of an answer, unless it has some, and save them with it."""
    question = await in_db(_read_question, answer_id)
    if question is None:
        return
    try:
        async with asyncio.timeout(SECONDS):
            findings = await _find(question)
    except TimeoutError:
        findings = Findings(error=SLOW)
    except (LLMError, TextsTooLarge, llm.NoServer) as error:
        findings = Findings(error=str(error))
    await in_db(_save, answer_id, question, findings)


async def _find(question: _Question) -> Findings:
    target = await in_db(llm.default_target, Use.EMBEDDINGS)
    embedder = await identify(target, lane=Lane.INTERACTIVE)
    text = question.text[:QUESTION_CHARACTERS]
    prepared = await embed_prepared(
        embedder, [text], PREPARATION, lane=Lane.INTERACTIVE, lasting=False
    )
    return await in_db(_choose, question, embedder, prepared.vectors)


def _read_question(answer_id: int) -> _Question | None:
    """Return what to search for; None if there is nothing to search, or it was found before."""
    answer = Message.objects.select_related("parent", "conversation").get(pk=answer_id)
    question, conversation = answer.parent, answer.conversation
    assert question is not None
    if conversation.project_id is None and not question.passages:
        return None
    sources = _sources(branch_before(question))
    found = Findings.from_json(question.passages)
    if found.passages or not is_needed(conversation):
        _save_sources(answer_id, sources, found)
        return None
    assert conversation.project_id is not None
    prefix = conversation.documents
    return _Question(
        question.pk,
        question.content,
        conversation.project_id,
        frozenset(prefix.document_ids if prefix else ()),
        _max_bytes(conversation),
        sources,
    )


def _sources(branch: Sequence[Message]) -> list[Source]:
    """Return the sources of a branch, each once: its number stays the same in all messages."""
    found = {
        passage.source.number: passage.source
        for message in branch
        if message.passages
        for passage in Findings.from_json(message.passages).passages
    }
    return list(found.values())


def _max_bytes(conversation: Conversation) -> int | None:
    from apps.chat.prompt.build import chosen_model  # it imports the attachments, and these us

    try:
        server, model = chosen_model(conversation)
    except llm.NoServer:
        return None
    context = server.context_of(llm.choose_target(server, model).model)
    return None if context is None else int(ranking.SHARE_OF_CONTEXT * context / TOKENS_PER_BYTE)


def _choose(question: _Question, embedder: Embedder, vectors: Vectors) -> Findings:
    ready = _searchable(question.project).exclude(pk__in=question.whole)
    other = list(ready.exclude(fingerprint=embedder.fingerprint))
    for document in other:
        documents.retry(document)
    rows = list(
        Passage.objects.filter(
            document__in=ready.filter(fingerprint=embedder.fingerprint), vector__isnull=False
        ).values_list("pk", "vector")
    )
    error = CHANGED if other else ""
    if not rows:
        return Findings(error=error)
    stored = np.frombuffer(b"".join(bytes(vector or b"") for _, vector in rows), dtype="<f4")
    nearest = ranking.rank(np.asarray(vectors[0]), stored.reshape(len(rows), -1))
    by_id = Passage.objects.select_related("document").in_bulk([rows[i][0] for i in nearest])
    passages = [by_id[rows[i][0]] for i in nearest if rows[i][0] in by_id]
    count = ranking.fit([text_bytes(one.text) for one in passages], question.max_bytes)
    return Findings(_number(passages[:count], question.sources), error=error)


def _number(passages: Sequence[Passage], sources: Sequence[Source]) -> list[SentPassage]:
    numbers = {(source.document, source.position): source.number for source in sources}
    sent = []
    for passage in passages:
        key = passage.document_id, passage.position
        number = numbers.setdefault(key, max(numbers.values(), default=0) + 1)
        source = Source(number, *key, passage.document.name, passage.page)
        sent.append(SentPassage(source, passage.text))
    return sent


def _save(answer_id: int, question: _Question, findings: Findings) -> None:
    """Keep the passages, unless another answer to the question was faster."""
    stored = Message.objects.filter(pk=question.pk)
    kept = Findings.from_json(stored.values_list("passages", flat=True).first())
    if not kept.passages:
        stored.update(passages=findings.to_json())
        kept = findings
    _save_sources(answer_id, question.sources, kept)


def _save_sources(answer_id: int, before: Sequence[Source], findings: Findings) -> None:
    """Keep with an answer what it may cite and what was found, or why nothing was searched."""
    found = [passage.source for passage in findings.passages]
    by_number = {source.number: source for source in [*before, *found]}
    data = Findings(
        sources=list(by_number.values()),
        found=[source.number for source in found],
        error=findings.error,
    ).to_json()
    if data:
        Message.objects.filter(pk=answer_id).update(passages=data)
