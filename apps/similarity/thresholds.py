"""The similarity of a job's rows, and the rows that each threshold would keep (pure).

Rows come in the order of the job. A row is removed if an earlier row that is kept is at least as
similar as the threshold: the rule that a running job applies. So a lower threshold does not only
remove rows; a row that only resembled a removed one may be kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.similarity.minhash import HASHES

STEPS = tuple(range(50, 101))
"""Thresholds in percent. With one more of them, a mask of 64 bits would be too small."""
MIN_SIMILARITY = 0.5
# (rows of a band, bands): a pair of similarity 0.7 is found with 99.8 %, one of 0.5 with 79 %. If
# very many rows share a band of four, the bands of eight still find what is nearly equal.
BANDINGS = ((4, 24), (8, 8))
# Rows of a bucket, just before a row, that are compared with it; also the first of the bucket.
BEFORE = 2
MAX_PAIRS_PER_ROW = 8  # the most similar earlier rows
PAIRS_AT_ONCE = 50_000
BLOCK = 1_024
_EVERY = (1 << len(STEPS)) - 1
_weights = np.random.default_rng(20261121).integers(1, 2**63, size=8, dtype=np.uint64) | np.uint64(
    1
)


@dataclass(frozen=True, slots=True)
class SimilarPairs:
    """Rows and similar earlier ones, ordered by `later` and then the most similar first."""

    later: NDArray[np.int64]
    earlier: NDArray[np.int64]
    similarity: NDArray[np.float64]

    @classmethod
    def strongest(
        cls, later: NDArray[np.int64], earlier: NDArray[np.int64], similarity: NDArray[np.float64]
    ) -> "SimilarPairs":
        """Keep the `MAX_PAIRS_PER_ROW` most similar of each row."""
        order = np.lexsort((earlier, -similarity, later))
        later, earlier, similarity = later[order], earlier[order], similarity[order]
        first = np.searchsorted(later, later, side="left")
        among = np.arange(len(later)) - first < MAX_PAIRS_PER_ROW
        return cls(later[among], earlier[among], similarity[among])


def pair_signatures(signatures: NDArray[np.uint16]) -> SimilarPairs:
    """Find pairs with a similarity of at least `MIN_SIMILARITY`, by (rows, HASHES) signatures.

    The work is bounded: some 100 comparisons per row at most, however similar the rows are.
    """
    rows = len(signatures)
    codes = [np.zeros(0, dtype=np.int64)]
    for width, bands in BANDINGS:
        for band in range(bands):
            part = signatures[:, band * width : (band + 1) * width]
            codes.append(np.unique(_candidates(part)))
    found = np.unique(np.concatenate(codes))
    later, earlier = found // max(rows, 1), found % max(rows, 1)
    similarity = np.empty(len(found))
    for start in range(0, len(found), PAIRS_AT_ONCE):
        now = slice(start, start + PAIRS_AT_ONCE)
        equal = signatures[later[now]] == signatures[earlier[now]]
        similarity[now] = equal.sum(axis=1) / HASHES
    near = similarity >= MIN_SIMILARITY
    return SimilarPairs.strongest(later[near], earlier[near], similarity[near])


def _candidates(part: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Return pairs that agree in a band, as `later * rows + earlier`."""
    rows = len(part)
    weights = _weights[: part.shape[1]]
    values = (part.astype(np.uint64) * weights).sum(axis=1, dtype=np.uint64)
    order = values.argsort(kind="stable")
    values = values[order]
    found = []
    for distance in range(1, BEFORE + 1):
        same = np.flatnonzero(values[distance:] == values[:-distance])
        found.append(order[same + distance] * rows + order[same])
    first = np.searchsorted(values, values, side="left")
    others = np.flatnonzero(np.arange(rows) - first > BEFORE)
    found.append(order[others] * rows + order[first[others]])
    return np.concatenate(found)


def pair_vectors(vectors: NDArray[np.float32]) -> SimilarPairs:
    """Find pairs of (rows, dimensions) unit vectors with a cosine of at least `MIN_SIMILARITY`.

    Compares all rows with all others.
    """
    rows = len(vectors)
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
    for start in range(0, rows, BLOCK):
        end = min(start + BLOCK, rows)
        cosines = vectors[start:end] @ vectors[:end].T
        cosines[np.arange(end)[None, :] >= np.arange(start, end)[:, None]] = -1.0
        most = min(MAX_PAIRS_PER_ROW, end)
        best = np.argpartition(-cosines, most - 1, axis=1)[:, :most]
        similarity = np.take_along_axis(cosines, best, axis=1).astype(np.float64)
        later = np.repeat(np.arange(start, end), most).reshape(similarity.shape)
        near = similarity >= MIN_SIMILARITY
        parts.append((later[near], best[near].astype(np.int64), np.minimum(similarity[near], 1.0)))
    if not parts:
        empty = np.zeros(0, dtype=np.int64)
        return SimilarPairs(empty, empty, np.zeros(0))
    return SimilarPairs.strongest(
        *(np.concatenate([part[at] for part in parts]) for at in range(3))
    )


@dataclass(frozen=True, slots=True)
class ThresholdOutcomes:
    """The rows that are kept at each threshold of `STEPS`."""

    pairs: SimilarPairs
    kept_bits: NDArray[np.uint64]
    """(rows,): bit n is set if the row is kept at `STEPS[n]`."""

    def kept_at(self, step: int) -> NDArray[np.bool_]:
        """Return a mask of the rows that are kept at a threshold in percent."""
        bit = np.uint64(STEPS.index(step))
        mask: NDArray[np.bool_] = (self.kept_bits >> bit) & np.uint64(1) == 1
        return mask

    def duplicates_at(self, step: int) -> dict[int, tuple[int, float]]:
        """Return for each removed row the most similar kept one before it, and the similarity."""
        kept = self.kept_at(step)
        found: dict[int, tuple[int, float]] = {}
        near = (self.pairs.similarity >= _as_fraction(step)) & ~kept[self.pairs.later]
        near &= kept[self.pairs.earlier]
        for later, earlier, similarity in _as_tuples(self.pairs, near):
            found.setdefault(later, (earlier, similarity))
        return found


def evaluate(rows: int, pairs: SimilarPairs, fixed: Sequence[bool]) -> ThresholdOutcomes:
    """Work out the rows that each threshold keeps, in one pass over the pairs.

    Args:
        fixed: (rows,), True for rows that are always kept.
    """
    steps = np.searchsorted([_as_fraction(step) for step in STEPS], pairs.similarity, side="right")
    masks: dict[int, int] = {}
    for later, earlier, below in zip(
        pairs.later.tolist(), pairs.earlier.tolist(), steps.tolist(), strict=True
    ):
        if not fixed[later]:
            removed = masks.get(earlier, _EVERY) & ((1 << below) - 1)
            masks[later] = masks.get(later, _EVERY) & ~removed
    bits = np.full(rows, _EVERY, dtype=np.uint64)
    bits[list(masks)] = np.array(list(masks.values()), dtype=np.uint64)
    return ThresholdOutcomes(pairs, bits)


def histogram(rows: NDArray[np.bool_], pairs: SimilarPairs) -> list[int]:
    """Count the rows whose most similar earlier row is 50 %, 51 %, … 100 % similar, rounded down.

    Args:
        rows: (rows,), True for the rows that are counted.
    """
    first = np.unique(pairs.later, return_index=True)
    counted = rows[first[0]]
    at = (pairs.similarity[first[1]][counted] * 100 + 1e-6).astype(int) - STEPS[0]
    found: list[int] = np.bincount(at, minlength=len(STEPS)).tolist()
    return found


def _as_fraction(step: int) -> float:
    """Return a little less: no share of 128 hashes, nor a cosine in float32, is exactly 0.9."""
    return step / 100 - 1e-6


def _as_tuples(pairs: SimilarPairs, among: NDArray[np.bool_]) -> list[tuple[int, int, float]]:
    chosen = (pairs.later[among], pairs.earlier[among], pairs.similarity[among])
    return list(zip(*(part.tolist() for part in chosen), strict=True))
