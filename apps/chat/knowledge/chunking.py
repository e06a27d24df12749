"""A document's text as passages: cut at headings and paragraphs, never across pages. Pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAX_CHARACTERS = 1200
HEADING_CHARACTERS = 200
_HEADING = re.compile(r"#{1,6}[ \t]+(.+)")
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
_SENTENCE_END = re.compile(r"[.!?][\"'”’)]?\s+|\n")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a PDF, or a part of a document without pages."""

    text: str
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    text: str
    page: int | None = None
    heading: str = ""
    """The last heading before or at its beginning."""


def split_pages(pages: Iterable[Page]) -> Iterator[Chunk]:
    """Yield passages of at most MAX_CHARACTERS. Together they hold every word of the pages."""
    heading = ""
    for page in pages:
        parts: list[str] = []
        size = 0
        of_parts = heading
        for block in _blocks(page.text):
            found = _HEADING.match(block)
            if parts and (found or size + len(block) + 2 > MAX_CHARACTERS):
                yield Chunk("\n\n".join(parts), page.number, of_parts)
                parts, size = [], 0
            if found:
                heading = found[1].strip(" \t#")[:HEADING_CHARACTERS]
            if not parts:
                of_parts = heading
            parts.append(block)
            size += len(block) + 2
        if parts:
            yield Chunk("\n\n".join(parts), page.number, of_parts)


def _blocks(text: str) -> Iterator[str]:
    """Yield headings and paragraphs, and the pieces of those that are too long."""
    for paragraph in _PARAGRAPHS.split(text):
        rest = paragraph.strip()
        if (found := _HEADING.match(rest)) and "\n" in rest and len(found[0]) < MAX_CHARACTERS:
            yield found[0].strip()
            rest = rest[found.end() :].strip()
        while len(rest) > MAX_CHARACTERS:
            end = _cut(rest)
            yield rest[:end].strip()
            rest = rest[end:].strip()
        if rest:
            yield rest


def _cut(text: str) -> int:
    """Return where to cut: after a sentence if one ends in the second half, else after a word."""
    half = MAX_CHARACTERS // 2
    ends = [found.end() for found in _SENTENCE_END.finditer(text, half, MAX_CHARACTERS)]
    if ends:
        return ends[-1]
    space = text.rfind(" ", half, MAX_CHARACTERS)
    return space + 1 if space > 0 else MAX_CHARACTERS
