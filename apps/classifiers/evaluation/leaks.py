"""Copies and contradictions among rows, by the text they share. Pure numpy."""

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]


def count_duplicates(groups: Codes) -> int:
    """Rows whose text was there before."""
    return len(groups) - len(np.unique(groups))


def count_label_conflicts(groups: Codes, labels: Codes) -> int:
    """Texts that carry more than one label."""
    pairs = np.unique(np.stack([groups, labels]), axis=1)
    _, counts = np.unique(pairs[0], return_counts=True)
    return int((counts > 1).sum())
