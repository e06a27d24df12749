"""Finds texts that repeat a test set.

Contamination is eight words in a row that also stand in a test text, the overlap that Brown et al.
2020 (GPT-3, appendix C) and later work look for, all of a test text of four to seven words, or a
near-duplicate of a test text. Scripts without spaces between words (Chinese, Japanese, Thai and
others) count characters instead: thirteen are about as much as eight words.
"""

from collections.abc import Iterable, Sequence

from apps.similarity.dedup import NearDuplicateIndex
from apps.similarity.words import split_unspaced_letters, split_words

WORDS, MIN_WORDS = 8, 4  # “Where is my card?” in a longer text repeats it; “Thank you” does not
LETTERS, MIN_LETTERS = 13, 6
NEAR_DUPLICATE = 0.8


class TestTextIndex:
    """Texts of a test set, which no training text may repeat."""

    __test__ = False  # not a test of pytest

    def __init__(self, texts: Iterable[str]) -> None:
        self._near = NearDuplicateIndex()
        self._words = _RunIndex(WORDS, MIN_WORDS, " ")
        self._letters = _RunIndex(LETTERS, MIN_LETTERS, "")
        for place, text in enumerate(texts):
            self._near.add(place, text)
            self._words.add(place, split_words(text))
            self._letters.add(place, split_unspaced_letters(text))

    def describe_overlap(self, text: str) -> str:
        """Return a sentence on the test text that a text repeats; empty if it repeats none."""
        found = self._words.find(split_words(text)) or self._letters.find(
            split_unspaced_letters(text)
        )
        if found is not None:
            run, place = found
            return f"Shares “{run}” with row {place + 1} of the test set."
        match = self._near.find_nearest(text)
        if match is not None and match.similarity >= NEAR_DUPLICATE:
            percent = round(100 * match.similarity)
            return f"About {percent}% similar to row {match.key + 1} of the test set."
        return ""


class _RunIndex:
    """Runs of units (words or characters) of some texts."""

    def __init__(self, length: int, min_length: int, separator: str) -> None:
        """
        Args:
            length: units in a run.
            min_length: a text with at least so many units, but fewer than `length`, is one run.
            separator: joins two units.
        """
        self._length, self._min_length, self._separator = length, min_length, separator
        self._known: dict[int, int] = {}
        self._lengths = {length}

    def add(self, place: int, units: Sequence[str]) -> None:
        length = min(self._length, len(units))
        if length >= self._min_length:
            self._lengths.add(length)
            for run in _runs(units, length):
                self._known.setdefault(hash(run), place)

    def find(self, units: Sequence[str]) -> tuple[str, int] | None:
        """Return a known run, as a text, and the place of the first text that has it."""
        for length in sorted(self._lengths, reverse=True):
            for run in _runs(units, length):
                if (place := self._known.get(hash(run))) is not None:
                    return self._separator.join(run), place
        return None


def _runs(units: Sequence[str], length: int) -> Iterable[tuple[str, ...]]:
    return (tuple(units[at : at + length]) for at in range(len(units) - length + 1))
