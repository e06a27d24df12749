"""The pairs of labels that are confused most, with rows that show it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from apps.classifiers.evaluation.confused_pairs import most_confused_pairs

LABELS = ["card", "rate", "loan", "fee"]
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=60)


def codes(numbers: list[int]) -> np.ndarray:
    return np.asarray(numbers, dtype=np.int64)


def test_the_pair_with_most_mistakes_comes_first_with_its_first_rows() -> None:
    truth, predicted = codes([0, 0, 0, 0, 1, 1, 2]), codes([1, 1, 0, 1, 0, 1, 2])
    first, second = most_confused_pairs(truth, predicted, LABELS, rows=2)
    assert (first.label, first.predicted, first.count, first.support) == ("card", "rate", 3, 4)
    assert first.rows == [0, 1]
    assert (second.label, second.predicted, second.count, second.support) == ("rate", "card", 1, 2)


def test_without_a_mistake_or_a_row_there_is_no_pair() -> None:
    assert most_confused_pairs(codes([]), codes([]), LABELS) == []
    assert most_confused_pairs(codes([0, 1]), codes([0, 1]), LABELS) == []


@given(ROWS)
def test_all_pairs_together_are_all_mistakes(pairs: list[tuple[int, int]]) -> None:
    truth, predicted = codes([one for one, _ in pairs]), codes([other for _, other in pairs])
    found = most_confused_pairs(truth, predicted, LABELS, limit=100, rows=100)
    assert sum(pair.count for pair in found) == int((truth != predicted).sum())
    assert [pair.count for pair in found] == sorted((pair.count for pair in found), reverse=True)
    for pair in found:
        assert len(pair.rows) == pair.count <= pair.support
        assert {LABELS[truth[row]] for row in pair.rows} == {pair.label}
        assert {LABELS[predicted[row]] for row in pair.rows} == {pair.predicted}


@given(ROWS, st.integers(1, 5), st.integers(1, 3))
def test_no_more_pairs_and_rows_than_asked_for(
    pairs: list[tuple[int, int]], limit: int, rows: int
) -> None:
    truth, predicted = codes([one for one, _ in pairs]), codes([other for _, other in pairs])
    found = most_confused_pairs(truth, predicted, LABELS, limit=limit, rows=rows)
    assert len(found) <= limit
    assert all(len(pair.rows) == min(rows, pair.count) for pair in found)
