"""How alike the rows of a job are, and what each threshold would leave of them (pure).

Rows come in the order in which they are judged. A row goes when one before it that stays has at
least the threshold in common: the rule by which a job judges its rows as they come in. So a lower
threshold does not only take rows out; what only resembled a row that went may stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.similarity.minhash import HASHES

STEPS = tuple(range(50, 101))
"""The thresholds that are worked out, in percent. One more of them, and a mask has no 64 bits."""
LEAST = 0.5
# (rows of a band, bands): a pair with 0.7 in common is found with 99.8 %, one with 0.5 with 79 %,
# and where very many rows share a band of four, the bands of eight still find what is nearly equal.
BANDINGS = ((4, 24), (8, 8))
# So many of the rows of a bucket that come just before a row are compared with it, and its first.
BEFORE = 2
KEPT = 8  # earlier rows remembered of each row, the most similar ones
PAIRS_AT_ONCE = 50_000
BLOCK = 1_024
_EVERY = (1 << len(STEPS)) - 1
_weights = np.random.default_rng(20261121).integers(1, 2**63, size=8, dtype=np.uint64) | np.uint64(
    1
)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows and earlier ones that they resemble, by `later` and then the most similar first."""

    later: NDArray[np.int64]
    earlier: NDArray[np.int64]
    share: NDArray[np.float64]

    @classmethod
    def of(
        cls, later: NDArray[np.int64], earlier: NDArray[np.int64], share: NDArray[np.float64]
    ) -> "Pairs":
        """The `KEPT` most similar of each row."""
        order = np.lexsort((earlier, -share, later))
        later, earlier, share = later[order], earlier[order], share[order]
        first = np.searchsorted(later, later, side="left")
        among = np.arange(len(later)) - first < KEPT
        return cls(later[among], earlier[among], share[among])


def pairs_of_signatures(signatures: NDArray[np.uint16]) -> Pairs:
    """Pairs with at least `LEAST` of their 5-grams in common, by (rows, HASHES) signatures.

    The work is bounded: some 100 comparisons a row at most, however alike the rows are.
    """
    rows = len(signatures)
    codes = [np.zeros(0, dtype=np.int64)]
    for width, bands in BANDINGS:
        for band in range(bands):
            part = signatures[:, band * width : (band + 1) * width]
            codes.append(np.unique(_candidates(part)))
    found = np.unique(np.concatenate(codes))
    later, earlier = found // max(rows, 1), found % max(rows, 1)
    share = np.empty(len(found))
    for start in range(0, len(found), PAIRS_AT_ONCE):
        now = slice(start, start + PAIRS_AT_ONCE)
        equal = signatures[later[now]] == signatures[earlier[now]]
        share[now] = equal.sum(axis=1) / HASHES
    near = share >= LEAST
    return Pairs.of(later[near], earlier[near], share[near])


def _candidates(part: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Pairs that agree in a band, as `later * rows + earlier`."""
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


def pairs_of_vectors(vectors: NDArray[np.float32]) -> Pairs:
    """Pairs of (rows, dimensions) unit vectors with a cosine of at least `LEAST`: all compared."""
    rows = len(vectors)
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
    for start in range(0, rows, BLOCK):
        end = min(start + BLOCK, rows)
        cosines = vectors[start:end] @ vectors[:end].T
        cosines[np.arange(end)[None, :] >= np.arange(start, end)[:, None]] = -1.0
        most = min(KEPT, end)
        best = np.argpartition(-cosines, most - 1, axis=1)[:, :most]
        share = np.take_along_axis(cosines, best, axis=1).astype(np.float64)
        later = np.repeat(np.arange(start, end), most).reshape(share.shape)
        near = share >= LEAST
        parts.append((later[near], best[near].astype(np.int64), np.minimum(share[near], 1.0)))
    if not parts:
        empty = np.zeros(0, dtype=np.int64)
        return Pairs(empty, empty, np.zeros(0))
    return Pairs.of(*(np.concatenate([part[at] for part in parts]) for at in range(3)))


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What becomes of the rows at each threshold of `STEPS`."""

    pairs: Pairs
    stays: NDArray[np.uint64]
    """Of each row: bit n says whether it stays at `STEPS[n]`."""

    def at(self, step: int) -> NDArray[np.bool_]:
        """Which rows stay at a threshold, in percent."""
        bit = np.uint64(STEPS.index(step))
        stays: NDArray[np.bool_] = (self.stays >> bit) & np.uint64(1) == 1
        return stays

    def cause(self, step: int) -> dict[int, tuple[int, float]]:
        """Of each row that goes: the most similar earlier row that stays, and the share."""
        stays = self.at(step)
        found: dict[int, tuple[int, float]] = {}
        near = (self.pairs.share >= _share(step)) & ~stays[self.pairs.later]
        near &= stays[self.pairs.earlier]
        for later, earlier, share in _listed(self.pairs, near):
            found.setdefault(later, (earlier, share))
        return found


def judged(rows: int, pairs: Pairs, fixed: Sequence[bool]) -> Verdicts:
    """What each threshold leaves, in one pass over the pairs.

    Args:
        fixed: rows that stay whatever they resemble.
    """
    steps = np.searchsorted([_share(step) for step in STEPS], pairs.share, side="right")
    masks: dict[int, int] = {}
    for later, earlier, below in zip(
        pairs.later.tolist(), pairs.earlier.tolist(), steps.tolist(), strict=True
    ):
        if not fixed[later]:
            goes = masks.get(earlier, _EVERY) & ((1 << below) - 1)
            masks[later] = masks.get(later, _EVERY) & ~goes
    stays = np.full(rows, _EVERY, dtype=np.uint64)
    stays[list(masks)] = np.array(list(masks.values()), dtype=np.uint64)
    return Verdicts(pairs, stays)


def histogram(rows: NDArray[np.bool_], pairs: Pairs) -> list[int]:
    """How many rows resemble the most similar earlier one by 50 %, 51 %, … 100 %, rounded down.

    Args:
        rows: which rows are counted.
    """
    first = np.unique(pairs.later, return_index=True)
    counted = rows[first[0]]
    at = (pairs.share[first[1]][counted] * 100 + 1e-6).astype(int) - STEPS[0]
    found: list[int] = np.bincount(at, minlength=len(STEPS)).tolist()
    return found


def _share(step: int) -> float:
    """A little less: of 128 hashes, or of a cosine in float32, none is exactly 0.9."""
    return step / 100 - 1e-6


def _listed(pairs: Pairs, among: NDArray[np.bool_]) -> list[tuple[int, int, float]]:
    chosen = (pairs.later[among], pairs.earlier[among], pairs.share[among])
    return list(zip(*(part.tolist() for part in chosen), strict=True))
