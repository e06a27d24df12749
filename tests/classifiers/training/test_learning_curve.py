"""Learning curves on clouds of points, where more rows do help."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.classifiers.training import trainer
from apps.classifiers.training.estimator import TrainerOptions
from apps.classifiers.training.learning_curve import (
    SHARES,
    learning_curve,
    learning_curve_subsets,
)
from apps.classifiers.training.rows import RowVectors
from tests.classifiers.training.test_trainer import clouds, fit

codes = st.lists(st.integers(0, 4), min_size=1, max_size=80).map(
    lambda drawn: np.unique(drawn, return_inverse=True)[1].astype(np.int64)
)


@given(codes, st.integers(0, 5))
def test_subsets_grow_and_end_with_all_rows(labels: np.ndarray, seed: int) -> None:
    subsets = list(learning_curve_subsets(labels, SHARES, seed=seed))
    assert subsets[-1].all()
    for smaller, larger in pairwise(subsets):
        assert not (smaller & ~larger).any()


@given(codes, st.integers(0, 5))
def test_subsets_hold_each_label_in_its_share(labels: np.ndarray, seed: int) -> None:
    for share, subset in zip(
        SHARES, learning_curve_subsets(labels, SHARES, seed=seed), strict=True
    ):
        for label, count in enumerate(np.bincount(labels)):
            held = int(subset[labels == label].sum())
            assert held == max(1, round(share * count))


@pytest.fixture(scope="module")
def fitted() -> tuple[RowVectors, np.ndarray, np.ndarray, trainer.Fit]:
    vectors, labels = clouds(4, 30, noise=1.6)
    test, truth = clouds(4, 50, noise=1.6, seed=1)
    none = np.zeros((0, vectors.shape[1]), dtype=np.float32)
    return RowVectors(vectors, test, none, none), labels, truth, fit(vectors, labels)


def test_learning_curve_ends_at_the_accuracy_of_the_fit(
    fitted: tuple[RowVectors, np.ndarray, np.ndarray, trainer.Fit],
) -> None:
    vectors, labels, truth, found = fitted
    steps: list[int] = []
    points = learning_curve(vectors, labels, truth, 4, found, TrainerOptions(), report=steps.append)
    assert steps == [1, 2, 3, 4, 5]
    assert [point.rows for point in points] == [12, 24, 48, 84, 120]
    correct = found.model.choose(found.model.logits(vectors.test)) == truth
    assert points[-1].accuracy == pytest.approx(correct.mean())
    assert points[0].accuracy < points[-1].accuracy


def test_learning_curve_compares_each_point_with_the_one_before(
    fitted: tuple[RowVectors, np.ndarray, np.ndarray, trainer.Fit],
) -> None:
    vectors, labels, truth, found = fitted
    first, *later = learning_curve(vectors, labels, truth, 4, found, TrainerOptions())
    assert first.p_value is None
    for point in later:
        assert point.p_value is not None
        assert point.low is not None
        assert point.high is not None
        assert 0 < point.p_value <= 1
        assert point.gain_low < point.gain_high
        assert point.low < point.accuracy <= point.high


def test_learning_curve_ends_with_what_the_report_raises(
    fitted: tuple[RowVectors, np.ndarray, np.ndarray, trainer.Fit],
) -> None:
    def cancel(step: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learning_curve(*fitted[:3], 4, fitted[3], TrainerOptions(), report=cancel)
