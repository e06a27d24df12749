"""Near copies by embedding: pairs of rows whose vectors point the same way. Pure numpy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

THRESHOLD = 0.97  # on Banking77 with MiniLM: 537 of 3,080 test rows have such a training row
LIMIT = 5_000  # pairs; nobody reads more
BLOCK_BYTES = 64 << 20

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Pair:
    """Row `a` of the first vectors and row `b` of the second, and the cosine between them."""

    a: int
    b: int
    cosine: float


def near_pairs(
    a: Vectors,
    b: Vectors | None = None,
    *,
    threshold: float = THRESHOLD,
    limit: int = LIMIT,
    same: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
) -> list[Pair]:
    """The pairs with a cosine of at least `threshold`, the nearest first.

    Each row of `a` is paired with its nearest row of `b` only: a text that has forty near copies is
    one finding. Memory is bounded by `BLOCK_BYTES` besides the vectors.

    Args:
        a: unit vectors (n, d).
        b: unit vectors (m, d); None to compare `a` with itself, each pair once.
        same: a key per row of `a` and of `b`; rows with the same key are no near copies but equal.

    Raises:
        ValueError: the vectors have different lengths.
    """
    within = b is None
    other = a if b is None else b
    if a.ndim != 2 or other.ndim != 2 or a.shape[1] != other.shape[1]:
        raise ValueError(f"Vectors of shapes {a.shape} and {other.shape} cannot be compared.")
    if not len(a) or not len(other):
        return []
    pairs: list[Pair] = []
    rows = max(1, BLOCK_BYTES // (4 * len(other)))
    for start in range(0, len(a), rows):
        block = a[start : start + rows] @ other.T
        if within:  # each pair once: the other row comes later
            places = np.arange(start, start + len(block))
            block[np.arange(len(other))[None, :] <= places[:, None]] = -1.0
        if same is not None:
            block[same[0][start : start + rows, None] == same[1][None, :]] = -1.0
        nearest = block.argmax(axis=1)
        cosine = block[np.arange(len(block)), nearest]
        for row in np.flatnonzero(cosine >= threshold).tolist():
            pairs.append(Pair(start + row, int(nearest[row]), float(min(1.0, cosine[row]))))
    pairs.sort(key=lambda pair: (-pair.cosine, pair.a))
    return pairs[:limit]
