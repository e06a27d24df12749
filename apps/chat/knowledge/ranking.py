"""Which passages go into a message: exact search over unit vectors. Pure."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MAX_PASSAGES = 6
SHARE_OF_CONTEXT = 0.2


def rank(question: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the indices of the nearest vectors, the nearest first, at most MAX_PASSAGES.

    Args:
        question: (dimensions,)
        vectors: (passages, dimensions)
    """
    order = np.argsort(-(vectors @ question), kind="stable")
    return order[:MAX_PASSAGES]


def fit(sizes: Sequence[int], max_bytes: int | None) -> int:
    """Return how many of the passages fit, from the first on. The first one that does not ends it.

    Args:
        sizes: bytes of each, the nearest first.
        max_bytes: None: no limit.
    """
    total = 0
    for count, size in enumerate(sizes):
        total += size
        if max_bytes is not None and total > max_bytes:
            return count
    return len(sizes)
