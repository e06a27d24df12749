"""The fit itself: scikit-learn's, on vectors scaled in place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.classifiers.evaluation.calibration import softmax
from apps.classifiers.training.estimator import (
    Model,
    TrainerOptions,
    as_estimator,
    fit_once,
    scaled_vectors,
)
from tests.classifiers.training.test_trainer import clouds

numbers = st.lists(st.floats(-1, 1, width=32, allow_subnormal=False), min_size=1, max_size=30)


@given(numbers)
def test_scaled_vectors_are_given_back_to_the_bit(values: list[float]) -> None:
    vectors = np.asarray([values], dtype=np.float32)
    before = vectors.copy()
    with scaled_vectors(vectors):
        assert np.array_equal(vectors, before * 8)
    assert np.array_equal(vectors, before)


def test_scaled_vectors_are_given_back_after_an_error() -> None:
    vectors = np.ones((2, 3), dtype=np.float32)
    with pytest.raises(ValueError, match="stop"), scaled_vectors(vectors):
        raise ValueError("stop")
    assert vectors.tolist() == np.ones((2, 3)).tolist()


@pytest.mark.parametrize("labels", [2, 3])
def test_fit_once_has_a_row_of_weights_for_each_label(labels: int) -> None:
    vectors, codes = clouds(labels, 20, noise=0.5)
    model = fit_once(vectors, codes, labels, C=10)
    assert model.weights.shape == (labels, 32)
    assert model.bias.shape == (labels,)
    assert model.temperature == 1
    assert (model.choose(model.logits(vectors)) == codes).mean() > 0.9


def test_fit_once_with_balanced_labels_gives_rare_ones_more() -> None:
    vectors, codes = clouds(2, 100, noise=3.0)
    keep = np.r_[0:100, 100:108]
    plain, balanced = (
        fit_once(vectors[keep], codes[keep], 2, C=1, options=TrainerOptions(balanced=weighed))
        for weighed in (False, True)
    )
    shares = [softmax(model.logits(vectors))[:, 1].mean() for model in (plain, balanced)]
    assert shares[1] > shares[0]


@pytest.mark.parametrize("labels", [2, 4])
def test_as_estimator_predicts_the_calibrated_probabilities(labels: int) -> None:
    vectors, codes = clouds(labels, 20, noise=1.0)
    fitted = fit_once(vectors, codes, labels, C=10)
    names = [f"label {code}" for code in range(labels)]
    estimator = as_estimator(fitted.weights, fitted.bias, 2.0, names)
    expected = softmax(fitted.logits(vectors), 2.0)
    assert np.allclose(estimator.predict_proba(vectors), expected, atol=1e-5)
    assert estimator.classes_.tolist() == names


def test_choose_adds_the_favour_before_the_largest_is_taken() -> None:
    model = Model(
        np.eye(2, dtype=np.float32), np.zeros(2, np.float32), 1.0, np.asarray([0, 3], np.float32)
    )
    logits = model.logits(np.asarray([[2, 0], [9, 0]], dtype=np.float32))
    assert model.choose(logits).tolist() == [1, 0]
