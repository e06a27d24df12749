"""McNemar's test against values worked out by hand, and against scipy."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.classifiers.evaluation.row_results import PredictedRows
from apps.classifiers.evaluation.statistics.mcnemar import (
    RunPredictions,
    compare_paired,
    format_p_value,
    mcnemar_p_value,
    shared_test_rows,
)


@pytest.mark.parametrize(("old", "new"), [(0, 0), (1, 0), (5, 15), (121, 59), (3000, 3100)])
def test_p_value_is_that_of_the_exact_binomial_test(old: int, new: int) -> None:
    from scipy.stats import binomtest  # here: each process that runs tests imports every file

    expected = binomtest(old, old + new).pvalue if old + new else 1.0
    assert mcnemar_p_value(old, new) == pytest.approx(expected, rel=1e-6)


def test_compare_paired_counts_the_four_outcomes() -> None:
    old = np.asarray([True] * 80 + [False] * 20)
    new = np.asarray([True] * 75 + [False] * 5 + [True] * 15 + [False] * 5)
    found = compare_paired(old, new)
    assert (found.both, found.only_old, found.only_new, found.neither) == (75, 5, 15, 5)
    assert (found.old_accuracy, found.new_accuracy) == (0.8, 0.9)
    assert found.difference == pytest.approx(0.1)
    assert found.low < 0.1 < found.high
    assert found.is_significant


def test_the_same_answers_are_no_difference() -> None:
    right = np.asarray([True, False, True])
    found = compare_paired(right, right)
    assert (found.p_value, found.difference, found.is_significant) == (1.0, 0.0, False)
    assert found.low < 0 < found.high


answers = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=200).map(
    lambda pairs: tuple(np.asarray(side) for side in zip(*pairs, strict=True))
)


@given(st.integers(0, 300), st.integers(0, 300))
def test_p_value_is_that_of_scipy(old: int, new: int) -> None:
    from scipy.stats import binomtest

    expected = binomtest(old, old + new).pvalue if old + new else 1.0
    assert mcnemar_p_value(old, new) == pytest.approx(expected, rel=1e-6)
    assert mcnemar_p_value(old, new) == mcnemar_p_value(new, old)


@given(answers)
def test_compare_paired_counts_every_row_once(pairs: tuple[np.ndarray, np.ndarray]) -> None:
    old, new = pairs
    found = compare_paired(old, new)
    assert found.rows == len(old)
    assert found.old_accuracy == pytest.approx(old.mean())
    assert found.new_accuracy == pytest.approx(new.mean())
    assert found.difference == pytest.approx(new.mean() - old.mean())
    assert -1 <= found.low <= found.high <= 1


@given(answers)
def test_compare_paired_mirrors_if_the_sides_change(pairs: tuple[np.ndarray, np.ndarray]) -> None:
    old, new = pairs
    found, mirrored = compare_paired(old, new), compare_paired(new, old)
    assert found.p_value == mirrored.p_value
    assert (found.low, found.high) == pytest.approx((-mirrored.high, -mirrored.low))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0009, "< 0.001"), (0.001, "= 0.001"), (0.0499, "= 0.050"), (1, "= 1.000")],
)
def test_format_p_value(value: float, text: str) -> None:
    assert format_p_value(value) == text


def predictions(keys: list[int], truth: list[int], predicted: list[int]) -> RunPredictions:
    zero = np.zeros(len(keys), dtype=np.float32)
    rows = PredictedRows(
        index=np.arange(len(keys)),
        source=np.zeros(len(keys), dtype=np.int8),
        key=np.asarray(keys, dtype=np.uint64),
        truth=np.asarray(truth, dtype=np.int32),
        predicted=np.asarray(predicted, dtype=np.int32),
        confidence=zero,
        label_probability=zero,
        margin=zero,
        max_logit=zero,
        familiarity=zero,
    )
    return RunPredictions(rows, ["card", "rate"])


def test_shared_test_rows_are_those_with_the_same_text() -> None:
    old = predictions([5, 1, 2], [0, 1, 0], [0, 0, 0])
    new = predictions([2, 9, 1], [0, 0, 1], [1, 0, 1])
    found = shared_test_rows(old, new)
    assert len(found) == 2
    assert found.truth == ["rate", "card"]
    assert found.old_predicted == ["card", "card"]
    assert found.new_predicted == ["rate", "rate"]
    assert found.old_correct.tolist() == [False, True]
    assert found.new_correct.tolist() == [True, False]
    assert found.at_new.tolist() == [2, 0]


def test_shared_test_rows_compare_labels_by_name() -> None:
    old = predictions([1], [0], [0])
    new = replace(predictions([1], [1], [1]), labels=["rate", "card"])
    found = shared_test_rows(old, new)
    assert (found.old_correct.all(), found.new_correct.all()) == (True, True)
    assert found.relabelled == 0


def test_shared_test_rows_count_what_was_relabelled() -> None:
    found = shared_test_rows(
        predictions([1, 2], [0, 0], [0, 0]), predictions([1, 2], [0, 1], [0, 1])
    )
    assert found.relabelled == 1
    assert found.old_correct.tolist() == [True, False]
