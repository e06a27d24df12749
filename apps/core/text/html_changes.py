"""What to change in a page so that it shows another HTML, which goes on from the first. Pure.

An answer grows at its end: what stands before that stays in the page, with what a reader has
selected there. For sanitised HTML alone: each element is closed, and what is text is escaped.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import unescape

from apps.core.schemas.json_types import JsonObject

_TOKEN = re.compile(r'<(/?)([a-z0-9]+)(?:[^">]|"[^"]*")*>|[^<]+')
# Long code that is being written comes in these; they stand in one row and hold no others.
CHUNK = '<span class="chunk">'
_VOID = {"br", "hr", "input"}


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one element: what it has after `keep` children goes, then it gets more."""

    path: tuple[int, ...]
    """Which child of which child, counted in nodes. What follows these goes, too."""
    keep: int
    text: str
    """Appended to the text that is the last child kept."""
    html: str
    """Appended after that."""


@dataclass(frozen=True, slots=True)
class Update:
    """The change of a row of blocks. Its field names are the JSON keys of events."""

    at: int
    """Blocks before this one stay."""
    inside: Change | None
    """The change of block `at`, if that stays."""
    blocks: list[str]
    """What follows it."""

    def as_dict(self) -> JsonObject:
        return asdict(self)


def update(old: Sequence[str], new: Sequence[str], first: int = 0) -> Update | None:
    """Return what makes the new blocks of the old ones; None if they are the same.

    Args:
        first: the number of the first block.
    """
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    if same == len(old) == len(new):
        return None
    inside = change(old[same], new[same]) if same < min(len(old), len(new)) else None
    return Update(first + same, inside, list(new[same + (inside is not None) :]))


def change(old: str, new: str) -> Change | None:
    """Return the change of an element's HTML; None if the element has to be replaced."""
    same = _common(old, new)
    # Of each element that is open at the change: its place among the nodes, and where its HTML
    # starts. The first is the block itself.
    opened: list[tuple[int, int]] = []
    nodes = [0]
    for token in _tokens(new, same, nodes):
        is_text = token[2] is None
        if token.end() > same or (is_text and token.end() == same):
            return _change_at(old, new, token, opened, nodes)
        if token[1]:
            opened.pop()
            nodes.pop()
        elif is_text or token[2] in _VOID:
            nodes[-1] += 1
        else:
            opened.append((nodes[-1], token.start()))
            nodes[-1] += 1
            nodes.append(0)
    return None


def _tokens(html: str, same: int, nodes: list[int]) -> Iterator[re.Match[str]]:
    """Yield the tokens, without those of the chunks of long code that stay, which are counted."""
    first, last = html.find(CHUNK, 0, same), html.rfind(CHUNK, 0, same)
    if first < last:
        yield from _TOKEN.finditer(html, 0, first)
        nodes[-1] += html.count(CHUNK, first, last)
        yield from _TOKEN.finditer(html, last)
    else:
        yield from _TOKEN.finditer(html)


def _change_at(
    old: str, new: str, token: re.Match[str], opened: list[tuple[int, int]], nodes: list[int]
) -> Change | None:
    level, end = _outermost(new, token.start())
    depth = len(opened) + level
    if depth <= 0:
        return None
    path = tuple(place for place, _ in opened[1:depth])
    if level < 0:
        place, start = opened[depth]
        return Change(path, place, "", new[start:end])
    before = _TOKEN.match(old, token.start())
    if token[2] is None and before and before[2] is None and token[0].startswith(before[0]):
        text = unescape(token[0][len(before[0]) :])
        return Change(path, nodes[-1] + 1, text, new[token.end() : end])
    return Change(path, nodes[-1], "", new[token.start() : end])


def _outermost(html: str, start: int) -> tuple[int, int]:
    """Return how far outside of the place `start` its HTML goes on, and where it ends there.

    0: only inside the element that is open there; -1: also in the one around that.
    """
    depth = level = 0
    ends: dict[int, int] = {}
    for token in _TOKEN.finditer(html, start):
        if token[1]:
            ends.setdefault(depth, token.start())
            depth -= 1
            continue
        if depth < level:
            level = depth
        ends.pop(depth, None)
        if token[2] is not None and token[2] not in _VOID:
            depth += 1
    return level, ends.get(level, len(html))


def _common(old: str, new: str) -> int:
    """Return how many characters both begin with."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
