"""Folds for cross-validation. Rows with the same text never end up on both sides."""

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]


def text_groups(keys: Sequence[str]) -> Codes:
    """Return one number per row, the same for rows with the same key: (n,)."""
    places: dict[str, int] = {}
    return np.fromiter(
        (places.setdefault(key, len(places)) for key in keys), dtype=np.int64, count=len(keys)
    )


def deal_folds(labels: Codes, groups: Codes, *, folds: int, seed: int) -> Codes:
    """Return the fold of each row, 0 to folds - 1: (n,). Stratified by label, groups kept whole.

    A group is dealt by the label of its first row. scikit-learn's StratifiedGroupKFold weighs
    every group against every fold, which takes minutes for a hundred thousand texts.
    """
    from sklearn.model_selection import StratifiedKFold  # noqa: TID251

    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    of_groups = labels[first]
    largest = int(np.bincount(of_groups).max())
    splitter = StratifiedKFold(min(folds, largest), shuffle=True, random_state=seed)
    fold_of_group = np.empty(len(first), dtype=np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # labels rarer than folds are expected
        for fold, (_, held_out) in enumerate(splitter.split(first, of_groups)):
            fold_of_group[held_out] = fold
    return fold_of_group[inverse]
