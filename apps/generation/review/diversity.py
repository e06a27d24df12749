"""Diversity of a set of texts, in figures with a source (pure).

All of them depend on how long the texts are (arXiv 2507.15092) and how many there are, so two sets
are compared with as many texts of each, and the mean length stands beside.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.similarity.word_runs import WordRuns

PARTS, FEWEST_PARTS, FEWEST_OF_A_PART = 24, 4, 5


@dataclass(frozen=True, slots=True)
class Diversity:
    texts: int
    compression: float
    """Bytes of all texts by their bytes compressed with zlib: higher repeats more (Shaib et al.
    2024, arXiv 2403.00553)."""
    distinct_2: float | None
    """Share of pairs of neighbouring words that are distinct, 0 to 1 (Li et al. 2016, arXiv
    1510.03055). None, as all that counts words, for texts without spaces between words."""
    self_repetition: float | None
    """Share of texts with a run of four words that another one has too: a plain form of what
    Shaib et al. 2024 (arXiv 2403.00553) use."""
    mean_words: float | None
    vendi: float | None = None
    """How many entirely different texts would be as varied: the exponential of the entropy of the
    eigenvalues of the similarity matrix (Friedman and Dieng 2023, The Vendi Score, 2210.02410),
    here of embeddings; None where there are none."""


class TextSample:
    """Texts whose words are counted once, and measured as a whole and in parts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self._words = WordRuns.count(texts)

    def measure(
        self, part: Sequence[int] | None = None, vectors: NDArray[np.float32] | None = None
    ) -> Diversity | None:
        """The figures of all texts or of a part; None where there are fewer than two.

        Args:
            part: positions of the texts.
            vectors: their embeddings of unit length, (texts, dimensions).
        """
        places = range(len(self.texts)) if part is None else part
        if len(places) < 2:
            return None
        chosen, words = self._choose(places), self._words
        spaced = words.has_spaced_words(chosen)
        raw = "\n".join(self.texts[at] for at in places).encode("utf-8", "replace")
        return Diversity(
            texts=len(places),
            compression=len(raw) / len(zlib.compress(raw, 9)),
            distinct_2=words.distinct_pairs(chosen) if spaced else None,
            self_repetition=words.sharing_a_run(chosen) / len(places) if spaced else None,
            mean_words=float(words.words[chosen].mean()) if spaced else None,
            vendi=None if vectors is None else vendi_score(vectors),
        )

    def course(self) -> list[float]:
        """Distinct pairs of words in each of equal parts, from the first to the last: does it
        begin to repeat? Empty for too few texts to tell, and where words are not counted."""
        parts = min(PARTS, len(self.texts) // FEWEST_OF_A_PART)
        if parts < FEWEST_PARTS:
            return []
        size = len(self.texts) // parts
        chunks = [self._choose(range(at * size, (at + 1) * size)) for at in range(parts)]
        if not all(map(self._words.has_spaced_words, chunks)):
            return []
        return [self._words.distinct_pairs(chunk) for chunk in chunks]

    def _choose(self, places: Sequence[int]) -> NDArray[np.bool_]:
        chosen = np.zeros(len(self.texts), dtype=np.bool_)
        chosen[list(places)] = True
        return chosen


def vendi_score(vectors: NDArray[np.float32]) -> float:
    """From 1 (all the same) to the number of texts.

    For vectors of unit length the eigenvalues of the matrix of all similarities are those of the
    much smaller matrix of dimensions (section 3.3 of the paper).
    """
    count, dimensions = vectors.shape
    exact = vectors.astype(np.float64)
    kernel = exact @ exact.T if count <= dimensions else exact.T @ exact
    values = np.linalg.eigvalsh(kernel / count)
    values = values[values > 1e-12]
    return float(np.exp(-(values * np.log(values)).sum()))
