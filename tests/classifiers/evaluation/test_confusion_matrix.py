"""The confusion matrix as a page shows it."""

import numpy as np
import pytest

from apps.classifiers.evaluation import confusion_matrix
from apps.classifiers.evaluation.confusion_matrix import Cell, Pair

MATRIX = np.asarray([[9, 0, 5, 0], [0, 9, 0, 4], [0, 0, 9, 0], [0, 1, 0, 9]])


def test_all_pairs_puts_the_most_mistakes_first() -> None:
    assert confusion_matrix.all_pairs(MATRIX) == [
        Pair(0, 2, 5, 14),
        Pair(1, 3, 4, 13),
        Pair(3, 1, 1, 10),
    ]
    assert confusion_matrix.all_pairs(np.diag([3, 3])) == []


def test_side_by_side_puts_confused_labels_next_to_each_other() -> None:
    order = confusion_matrix.side_by_side(MATRIX)
    assert sorted(order) == [0, 1, 2, 3]
    assert abs(order.index(0) - order.index(2)) == 1
    assert abs(order.index(1) - order.index(3)) == 1


@pytest.mark.parametrize(("limit", "found"), [(4, {0, 1, 2, 3}), (3, {0, 2}), (1, set())])
def test_most_confused_labels_takes_whole_pairs_up_to_its_limit(
    limit: int, found: set[int]
) -> None:
    assert set(confusion_matrix.most_confused_labels(MATRIX, limit)) == found


def test_cells_are_red_by_their_mistakes() -> None:
    lines = confusion_matrix.cells(MATRIX, [0, 2])
    assert lines == [[Cell(0, 0, 9, 0), Cell(0, 2, 5, 4)], [Cell(2, 0, 0, 0), Cell(2, 2, 9, 0)]]
    assert confusion_matrix.cells(MATRIX, []) == []
