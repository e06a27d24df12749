"""Copies and contradictions."""

import numpy as np

from apps.classifiers.evaluation import leaks


def test_copies_and_conflicts() -> None:
    groups = np.asarray([0, 1, 0, 2, 1, 0])
    labels = np.asarray([0, 1, 0, 1, 0, 0])
    assert leaks.count_duplicates(groups) == 3
    assert leaks.count_label_conflicts(groups, labels) == 1
