"""The sentences of a passage that an answer refers to, found by the words they share. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from apps.chat.knowledge.citations import MARK, cited_numbers

STEM = 6
"""Characters of a word that are compared: “invoice” and “invoices” are the same."""
MIN_SHARED = 2
"""Words, below which no sentence is marked: one shared word is chance."""
MAX_CLAIMS = 50
"""Sentences of an answer that cite one number; the rest marks nothing."""
_MARK_AFTER_STOP = re.compile(rf"([.!?])((?:{MARK.pattern})+)")
_SENTENCE_END = re.compile(
    r"[.!?][\"'”’)]?(?=\s)|\n(?=[ \t]*(?:\n|[-*#|>][ \t]|[0-9]{1,3}\.[ \t]))"
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class TextPart:
    """A stretch of a passage."""

    text: str
    is_marked: bool = False


def mark_sentences(passage: str, answer: str, number: int) -> list[TextPart]:
    """Return a passage in parts; marked are the sentences that an answer cites it for."""
    sentences = list(_sentences(passage))
    words = [_words(passage[begin:end]) for begin, end in sentences]
    claims = islice(_claims(answer, number), MAX_CLAIMS)
    marked = {_nearest(claim, words) for claim in claims}
    parts: list[TextPart] = []
    at = 0
    for index in sorted(index for index in marked if index is not None):
        begin, end = sentences[index]
        parts += [TextPart(passage[at:begin]), TextPart(passage[begin:end], is_marked=True)]
        at = end
    return [part for part in [*parts, TextPart(passage[at:])] if part.text]


def _claims(answer: str, number: int) -> Iterable[set[str]]:
    """Yield the words of each sentence that cites a number."""
    text = _MARK_AFTER_STOP.sub(r"\2\1", answer)
    for begin, end in _sentences(text):
        sentence = text[begin:end]
        if number in cited_numbers(sentence):
            yield _words(MARK.sub(" ", sentence))


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence begins and ends, without the space around it."""
    begin = 0
    for end in [*(found.end() for found in _SENTENCE_END.finditer(text)), len(text)]:
        sentence = text[begin:end]
        if stripped := sentence.strip():
            first = begin + len(sentence) - len(sentence.lstrip())
            yield first, first + len(stripped)
        begin = end


def _nearest(claim: set[str], sentences: Sequence[set[str]]) -> int | None:
    """Return which sentence shares the most with a claim; rare words count more."""
    frequency = Counter(word for words in sentences for word in words)
    best, most = None, 0.0
    for index, words in enumerate(sentences):
        shared = claim & words
        score = sum(1 / frequency[word] for word in shared)
        if len(shared) >= MIN_SHARED and score > most:
            best, most = index, score
    return best


def _words(text: str) -> set[str]:
    return {word[:STEM] for word in _WORD.findall(text.casefold())}
