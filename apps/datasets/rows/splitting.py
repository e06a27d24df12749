"""A test split that is fair: some of each label, and no text on both sides. Pure."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def hold_out(
    labels: Sequence[str], keys: Sequence[int], *, share: float, seed: int
) -> NDArray[np.bool_]:
    """Mark the test rows: (n,).

    Rows with the same key (the same text) form a group, which counts for the label it came with
    first and stays whole. Of each label's groups about `share` are drawn, at least one, and never
    the last one: a label without training rows cannot be tested.
    """
    groups: dict[int, list[int]] = {}
    for place, key in enumerate(keys):
        groups.setdefault(key, []).append(place)
    by_label: dict[str, list[list[int]]] = {}
    for places in groups.values():
        by_label.setdefault(labels[places[0]], []).append(places)
    random = np.random.default_rng(seed)
    test = np.zeros(len(keys), dtype=np.bool_)
    for label in sorted(by_label):
        candidates = by_label[label]
        count = min(max(1, round(share * len(candidates))), len(candidates) - 1)
        for chosen in random.permutation(len(candidates))[:count].tolist():
            test[candidates[chosen]] = True
    return test
