"""Duplicates between training and test rows, and what they do to the score."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.classifiers.evaluation.evaluate_run import collect_row_results
from apps.classifiers.evaluation.leaks import (
    count_duplicates,
    count_label_conflicts,
    find_leaks,
)
from apps.classifiers.run_results import Leaks
from apps.classifiers.training.label_quality.label_rules import encode_labels
from apps.classifiers.training.rows import RowVectors
from tests.classifiers.training.label_quality.test_label_rules import rows
from tests.classifiers.training.test_trainer import clouds, fit

numbers = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=40)


def test_counts_by_hand() -> None:
    groups = np.asarray([0, 1, 0, 2, 1, 0])
    labels = np.asarray([0, 1, 0, 1, 0, 0])
    assert count_duplicates(groups) == 3
    assert count_label_conflicts(groups, labels) == 1


@given(numbers)
def test_count_duplicates_is_rows_less_texts(pairs: list[tuple[int, int]]) -> None:
    groups = np.asarray([group for group, _ in pairs])
    assert count_duplicates(groups) == len(pairs) - len({group for group, _ in pairs})


@given(numbers)
def test_count_label_conflicts_counts_texts_with_two_labels(pairs: list[tuple[int, int]]) -> None:
    labels: dict[int, set[int]] = {}
    for group, label in pairs:
        labels.setdefault(group, set()).add(label)
    groups, codes = (np.asarray(side) for side in zip(*pairs, strict=True))
    assert count_label_conflicts(groups, codes) == sum(len(found) > 1 for found in labels.values())


@pytest.fixture(scope="module")
def found() -> Leaks:
    """Leaks of a run with 24 training rows and 4 test rows: one exact, one near duplicate."""
    vectors, codes = clouds(2, 12, noise=1.0)
    train = [(f"text {n}", ("card", "rate")[code], False) for n, code in enumerate(codes.tolist())]
    test = [("text 0", "rate", True), ("text 1!", "card", True)]
    test += [("new 1", "card", True), ("new 2", "rate", True)]
    given = rows(*train, *test)
    other = clouds(2, 1, noise=1.0, seed=7)[0]
    whole = np.concatenate([vectors, vectors[:1], vectors[1:2] + 1e-3, other])
    whole /= np.linalg.norm(whole, axis=1, keepdims=True)
    sides = RowVectors.of_rows(given, whole.astype(np.float32))
    labels, all_codes = encode_labels(given)
    fitted = fit(sides.train, all_codes[given.train])
    results, _ = collect_row_results(given, all_codes, sides, fitted)
    return find_leaks(given, labels, all_codes, sides, results, seed=0)


def test_find_leaks_counts_exact_and_near_ones(found: Leaks) -> None:
    assert (found.test_rows, found.test_exact) == (4, 1)
    assert found.test_near == 2
    assert found.compared == 4
    assert found.train_copies == 0
    assert (found.copies, found.conflicts) == (1, 1)


def test_find_leaks_measures_the_accuracy_without_them(found: Leaks) -> None:
    assert found.clean_rows == 2
    assert found.accuracy_clean is not None
    assert 0 <= found.accuracy_clean <= 1
    assert found.accuracy_all != found.accuracy_clean


def test_find_leaks_lists_contradictions_first(found: Leaks) -> None:
    first, second = found.pairs
    assert (first.test.label, first.train.label) == ("rate", "card")
    assert (first.exact, second.exact) == (True, False)
    assert first.test.text == first.train.text == "text 0"
    assert second.cosine <= 1
    assert found.test_near_other_label == 1
