"""Which words of a text another one does not have at the same place (pure)."""

import re
from difflib import SequenceMatcher
from typing import NamedTuple

MAX_WORDS = 200
"""Of each text. The rest is not compared: the worst case grows with the cube."""

_WORD = re.compile(r"\S+\s*")


class Stretch(NamedTuple):
    """A piece of a text."""

    text: str
    differs: bool


def different_words(text: str, other: str) -> list[Stretch]:
    """Cut a text into stretches that the other text has too, and such that it lacks.

    Joined they are the text. What comes after `MAX_WORDS` words is not marked.
    """
    words, others = _WORD.findall(text)[:MAX_WORDS], _WORD.findall(other)[:MAX_WORDS]
    start = len(text) - len(text.lstrip())
    found = [Stretch(text[:start], False)] if start else []
    matcher = SequenceMatcher(None, _bare(others), _bare(words), autojunk=False)
    for tag, _, _, low, high in matcher.get_opcodes():
        if low < high:
            found += _stretches("".join(words[low:high]), differs=tag != "equal")
    compared = sum(len(stretch.text) for stretch in found)
    if compared < len(text):
        found.append(Stretch(text[compared:], False))
    return found


def _stretches(text: str, *, differs: bool) -> list[Stretch]:
    """The space after words that differ is not marked."""
    words = text.rstrip() if differs else text
    space = text[len(words) :]
    return [Stretch(words, differs), *([Stretch(space, False)] if space else [])]


def _bare(words: list[str]) -> list[str]:
    """Words without case and the space after them."""
    return [word.strip().casefold() for word in words]
