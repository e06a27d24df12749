"""Rows that are on both sides of a split, to the letter or nearly. Pure numpy.

A test row that the classifier was trained on says nothing about texts to come. Embeddings find
what comparing strings does not: another number in it, a word turned round.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Codes = NDArray[np.int64]

NEAR = 0.97
VERY_NEAR = 0.99
BLOCK = 1024
# More pairs than this are a sample's: 4e9 of 384 numbers take a core about a minute.
MOST_PAIRS = 4_000_000_000


@dataclass(frozen=True, slots=True)
class Nearest:
    """For each row looked at, the most similar row of the other side."""

    rows: Codes
    """Which rows were looked at: all, or a sample of them where there are too many."""
    partner: Codes
    cosine: Floats

    @property
    def near(self) -> NDArray[np.bool_]:
        return self.cosine >= NEAR


def nearest(left: Floats, right: Floats, *, seed: int = 0) -> Nearest:
    """The nearest row of `right` to each row of `left`, by cosine; both of unit length.

    Blockwise: never more than BLOCK * len(right) similarities at once.
    """
    rows = np.arange(len(left))
    most = max(1, MOST_PAIRS // max(1, len(right)))
    if len(left) > most:
        rows = np.sort(np.random.default_rng(seed).choice(len(left), most, replace=False))
    partner = np.zeros(len(rows), dtype=np.int64)
    cosine = np.full(len(rows), -1.0, dtype=np.float32)
    for start in range(0, len(rows), BLOCK):
        block = left[rows[start : start + BLOCK]]
        for offset in range(0, len(right), BLOCK * 16):
            similar = block @ right[offset : offset + BLOCK * 16].T
            best = similar.argmax(axis=1)
            value = similar[np.arange(len(block)), best]
            mine = slice(start, start + len(block))
            better = value > cosine[mine]
            partner[mine] = np.where(better, best + offset, partner[mine])
            cosine[mine] = np.maximum(cosine[mine], value)
    return Nearest(rows.astype(np.int64), partner, cosine)


def copies(groups: Codes) -> int:
    """Rows whose text was there before."""
    return len(groups) - len(np.unique(groups))


def conflicts(groups: Codes, labels: Codes) -> int:
    """Texts that carry more than one label."""
    pairs = np.unique(np.stack([groups, labels]), axis=1)
    _, counts = np.unique(pairs[0], return_counts=True)
    return int((counts > 1).sum())
