"""Diversity of a set of texts, in figures with a source (pure).

All of them depend on how long the texts are (arXiv 2507.15092) and how many there are, so two sets
are compared with as many texts of each, and the mean length stands beside.
"""

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from apps.similarity.words import has_spaced_words, split_words

MOST_TEXTS = 1_000
RUN = 4  # words
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


def measure(texts: Sequence[str], vectors: NDArray[np.float32] | None = None) -> Diversity | None:
    """The figures of some texts; None where there are fewer than two.

    Args:
        vectors: their embeddings of unit length, (texts, dimensions).
    """
    if len(texts) < 2:
        return None
    raw = "\n".join(texts).encode("utf-8", "replace")
    if not has_spaced_words(texts):
        return Diversity(
            texts=len(texts),
            compression=len(raw) / len(zlib.compress(raw, 9)),
            distinct_2=None,
            self_repetition=None,
            mean_words=None,
            vendi=None if vectors is None else vendi_score(vectors),
        )
    words = [split_words(text) for text in texts]
    pairs = [pair for found in words for pair in pairwise(found)]
    return Diversity(
        texts=len(texts),
        compression=len(raw) / len(zlib.compress(raw, 9)),
        distinct_2=len(set(pairs)) / len(pairs) if pairs else 0.0,
        self_repetition=_self_repetition(words),
        mean_words=sum(map(len, words)) / len(words),
        vendi=None if vectors is None else vendi_score(vectors),
    )


def _self_repetition(words: Sequence[Sequence[str]]) -> float:
    runs = [{tuple(found[at : at + RUN]) for at in range(len(found) - RUN + 1)} for found in words]
    counts = Counter(run for found in runs for run in found)
    return sum(any(counts[run] > 1 for run in found) for found in runs) / len(runs)


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


def course(texts: Sequence[str]) -> list[float]:
    """Distinct pairs of words in each of equal parts, from the first to the last: does it begin to
    repeat? Empty for too few texts to tell, and where words are not counted."""
    parts = min(PARTS, len(texts) // FEWEST_OF_A_PART)
    if parts < FEWEST_PARTS:
        return []
    size = len(texts) // parts
    chunks = [texts[at * size : (at + 1) * size] for at in range(parts)]
    found = [measured.distinct_2 for chunk in chunks if (measured := measure(chunk)) is not None]
    known = [value for value in found if value is not None]
    return known if len(known) == parts else []
