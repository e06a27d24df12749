"""Numbers in square brackets of an answer as links to its sources. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

_TOKEN = re.compile(r'<(/?)([a-zA-Z0-9]+)(?:[^">]|"[^"]*")*>')
MARK = re.compile(r"[ ]?\[[0-9]{1,4}(?:\s?,\s?[0-9]{1,4})*\]")
_MARK_IN_SENTENCE = re.compile(MARK.pattern + r"([.!?](?=\s|$))?")
_LITERAL = {"code", "pre", "a"}


@dataclass(frozen=True, slots=True)
class SourceLink:
    """Where a number of an answer leads."""

    address: str
    """Of the place in its document."""
    panel: str
    """Of the same place for the side panel."""
    title: str


def link(html: str, links: Mapping[int, SourceLink]) -> str:
    """Return sanitised HTML with links for known numbers. Code and links stay as they are."""
    parts: list[str] = []
    depth = at = 0
    for tag in _TOKEN.finditer(html):
        text = html[at : tag.start()]
        parts.append(text if depth else _link_text(text, links))
        parts.append(tag[0])
        if tag[2].lower() in _LITERAL:
            depth = max(0, depth + (-1 if tag[1] else 1))
        at = tag.end()
    rest = html[at:]
    parts.append(rest if depth else _link_text(rest, links))
    return "".join(parts)


def _link_text(text: str, links: Mapping[int, SourceLink]) -> str:
    """Link the numbers in a text. They stand behind the full stop of their sentence."""

    def replace(found: re.Match[str]) -> str:
        numbers = _numbers(found[0])
        if not all(number in links for number in numbers):
            return found[0]
        anchors = "".join(_anchor(number, links[number]) for number in numbers)
        return (found[1] or "") + anchors

    return _MARK_IN_SENTENCE.sub(replace, text)


def _anchor(number: int, target: SourceLink) -> str:
    title = escape(target.title)
    return (
        f'<a class="citation" href="{escape(target.address)}" data-source="{escape(target.panel)}"'
        f' title="{title}" aria-label="Source {number}: {title}">{number}</a>'
    )


def _numbers(mark: str) -> list[int]:
    return [int(number) for number in re.findall(r"[0-9]+", mark)]


def cited_numbers(text: str) -> set[int]:
    """Return all numbers in square brackets of a text."""
    return {number for mark in MARK.findall(text) for number in _numbers(mark)}
