"""McNemar's test against values worked out by hand, and against scipy."""

import numpy as np
import pytest

from apps.classifiers.evaluation.mcnemar import compare_paired, mcnemar_p_value


@pytest.mark.parametrize(("old", "new"), [(0, 0), (1, 0), (5, 15), (121, 59), (3000, 3100)])
def test_it_is_the_exact_binomial_test(old: int, new: int) -> None:
    from scipy.stats import binomtest  # here: each process that runs tests imports every file

    expected = binomtest(old, old + new).pvalue if old + new else 1.0
    assert mcnemar_p_value(old, new) == pytest.approx(expected, rel=1e-6)


def test_it_works() -> None:
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
