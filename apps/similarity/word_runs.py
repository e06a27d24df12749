"""Words of many texts and their neighbours, counted once for every part of the texts (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from apps.similarity.words import count_letters, split_words

Numbers = NDArray[np.int64]
RUN = 4  # words


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Pairs or runs of words: a number for each, the same where the words are, and its text."""

    numbers: Numbers
    texts: Numbers

    def of(self, chosen: NDArray[np.bool_]) -> "Occurrences":
        """Those in the chosen texts."""
        mask = chosen[self.texts]
        return Occurrences(self.numbers[mask], self.texts[mask])


@dataclass(frozen=True, slots=True)
class WordRuns:
    words: Numbers
    """Words of each text."""
    letters: Numbers
    unspaced: Numbers
    """Letters of each text that belong to scripts without spaces between words."""
    pairs: Occurrences
    runs: Occurrences
    """Each four words in a row, once for a text."""

    @classmethod
    def count(cls, texts: Sequence[str]) -> Self:
        """Count the words of texts."""
        vocabulary: dict[str, int] = {}
        split = [split_words(text) for text in texts]
        ids = [vocabulary.setdefault(word, len(vocabulary)) for words in split for word in words]
        lengths = np.array([len(words) for words in split], dtype=np.int64)
        letters = np.array([count_letters(text) for text in texts], dtype=np.int64).reshape(-1, 2)
        owners = np.repeat(np.arange(len(texts)), lengths)
        pairs = _join(np.array(ids, dtype=np.int64), 1)
        runs = _join(pairs, 2)
        return cls(
            lengths,
            letters[:, 0],
            letters[:, 1],
            _within_texts(pairs, owners),
            _distinct(_within_texts(runs, owners)),
        )

    def has_spaced_words(self, chosen: NDArray[np.bool_]) -> bool:
        """Return True if spaces mostly separate the words of the chosen texts."""
        return bool(2 * self.unspaced[chosen].sum() <= self.letters[chosen].sum())

    def distinct_pairs(self, chosen: NDArray[np.bool_]) -> float:
        """Return the share of pairs of neighbouring words that are distinct; 0 without pairs."""
        numbers = self.pairs.of(chosen).numbers
        return len(np.unique(numbers)) / len(numbers) if len(numbers) else 0.0

    def sharing_a_run(self, chosen: NDArray[np.bool_]) -> int:
        """Count the texts with a run of four words that another chosen text has too."""
        runs = self.runs.of(chosen)
        shared = np.bincount(runs.numbers, minlength=1)[runs.numbers] > 1
        return len(np.unique(runs.texts[shared]))


def _join(numbers: Numbers, distance: int) -> Numbers:
    """Number what stands at each place together with what stands `distance` further on."""
    most = int(numbers.max(initial=0)) + 1
    joined = numbers[:-distance] * most + numbers[distance:]
    inverse: Numbers = np.unique(joined, return_inverse=True)[1]
    return inverse


def _within_texts(numbers: Numbers, owners: Numbers) -> Occurrences:
    """Leave out what begins in one text and ends in the next."""
    starts = owners[: len(numbers)]
    inside = starts == owners[len(owners) - len(numbers) :]
    return Occurrences(numbers[inside], starts[inside])


def _distinct(found: Occurrences) -> Occurrences:
    """Leave out what a text has more than once."""
    count = int(found.texts.max(initial=0)) + 1
    numbers, texts = np.divmod(np.unique(found.numbers * count + found.texts), count)
    return Occurrences(numbers, texts)
