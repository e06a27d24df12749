"""Find the score that a share of in-scope texts is at or above. Pure numpy."""

from math import floor, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def score_limit(scores: Floats, kept: float) -> float:
    """The score that at least this share of texts like the scored ones is at or above.

    With enough rows their own order says it: of n + 1 rows alike each is as often the lowest (split
    conformal prediction, Vovk et al. 2005). A hundredth of twenty rows is none of them; there it
    is a bound as for normal scores, but nothing that one of the rows fell below.

    Args:
        scores: (n,) of in-scope rows, each by a model that had not seen it.
    """
    share, rows = 1 - kept, len(scores)
    if share < 1e-9 or rows < 2:
        return -float("inf")
    rank = floor(share * (rows + 1) + 1e-9)
    if rank >= 1:
        return float(np.partition(scores, rank - 1)[rank - 1])
    values = scores.astype(np.float64)
    factor = max(
        student_quantile(share, rows - 1) * sqrt(1 + 1 / rows), tolerance_factor(3 * share, rows)
    )
    if factor == float("inf"):
        return -factor
    return min(float(values.min()), float(values.mean() - factor * values.std(ddof=1)))


def student_quantile(share: float, freedom: int) -> float:
    """The upper quantile of Student's t, by its expansion about the normal (Abramowitz and Stegun
    1964, 26.7.5): to a hundredth from four degrees of freedom on. scipy takes long to load."""
    z = -NormalDist().inv_cdf(share)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def tolerance_factor(share: float, rows: int) -> float:
    """Return the tolerance factor: in 99 of 100 samples, no more than the share of texts to come
    lies that many standard deviations below the mean (Natrella 1963, one-sided tolerance limits).
    Infinite for a handful of rows."""
    normal = NormalDist()
    content, certain = normal.inv_cdf(1 - min(share, 0.5)), normal.inv_cdf(0.99)
    a = 1 - certain**2 / (2 * (rows - 1))
    if a <= 0:
        return float("inf")
    b = content**2 - certain**2 / rows
    return (content + sqrt(content**2 - a * b)) / a
