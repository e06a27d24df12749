"""The sources that an answer cites or could cite, and the passage behind each."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.text import Truncator

from apps.chat.knowledge.citations import cited_numbers
from apps.chat.knowledge.passages import Findings, Source
from apps.chat.knowledge.sentences import TextPart, mark_sentences
from apps.chat.models import Document, Message
from apps.chat.prompt.branch import branch_before

CONTEXT_CHARACTERS = 300
"""Of the text before and after a passage."""


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """The passage of a source with the text around it."""

    source: Source
    text: Sequence[TextPart]
    """In parts: the sentences that the answer refers to are marked."""
    heading: str = ""
    before: str = ""
    after: str = ""
    is_deleted: bool = False
    """True if its document is gone. The text is then that which was sent to the model."""


def sources_of(answer: Message) -> list[Source]:
    """Return the sources that an answer cites, in the order of their numbers."""
    if not answer.passages:
        return []
    numbers = cited_numbers(answer.content)
    found = [one for one in Findings.from_json(answer.passages).sources if one.number in numbers]
    return sorted(found, key=lambda one: one.number)


def found_of(answer: Message) -> list[Source]:
    """Return what was found for the question of an answer, in the order of their numbers."""
    findings = Findings.from_json(answer.passages)
    found = [one for one in findings.sources if one.number in findings.found]
    return sorted(found, key=lambda one: one.number)


def passage_of(answer: Message, source: Source) -> CitedPassage | None:
    """Return the passage of a source of an answer; None if neither document nor chat has it."""
    owned = Document.objects.filter(owner=answer.conversation.owner_id, pk=source.document)
    document = owned.first()
    if document is None:
        return _sent_passage(answer, source)
    near = document.passages.defer("vector").filter(
        position__range=(max(0, source.position - 1), source.position + 1)
    )
    by_position = {passage.position: passage for passage in near}
    here = by_position.pop(source.position, None)
    if here is None:
        return _sent_passage(answer, source)
    texts = {position - source.position: passage.text for position, passage in by_position.items()}
    before, after = _end_of(texts.get(-1, "")), _beginning_of(texts.get(1, ""))
    text = mark_sentences(here.text, answer.content, source.number)
    return CitedPassage(source, text, here.heading, before, after)


def _end_of(text: str) -> str:
    if len(text) <= CONTEXT_CHARACTERS:
        return text
    return "…" + text[-CONTEXT_CHARACTERS:].partition(" ")[2]


def _beginning_of(text: str) -> str:
    return Truncator(text).chars(CONTEXT_CHARACTERS)


def _sent_passage(answer: Message, source: Source) -> CitedPassage | None:
    for message in reversed(branch_before(answer)):
        for passage in Findings.from_json(message.passages).passages:
            if passage.source.number == source.number:
                text = mark_sentences(passage.text, answer.content, source.number)
                return CitedPassage(source, text, is_deleted=True)
    return None
