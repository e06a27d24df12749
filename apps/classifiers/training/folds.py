"""Folds for cross-validation. Rows with the same text never end up on both sides."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]


def text_groups(keys: Sequence[str]) -> Codes:
    """One number per row, the same for rows with the same key: (n,)."""
    places: dict[str, int] = {}
    return np.fromiter(
        (places.setdefault(key, len(places)) for key in keys), dtype=np.int64, count=len(keys)
    )


def deal_folds(labels: Codes, groups: Codes, *, folds: int, seed: int) -> Codes:
    """The fold of each row, 0 to folds - 1: (n,). Stratified by label, groups kept whole.

    The groups of a label are shuffled and dealt like cards, and the next label goes on where the
    last one stopped: folds differ by at most one group per label and by one overall.
    """
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(first))
    compare_labels = order[np.argsort(labels[first[order]], kind="stable")]
    fold_of_group = np.empty(len(first), dtype=np.int64)
    fold_of_group[compare_labels] = np.arange(len(first)) % folds
    return fold_of_group[inverse]
