"""Calibration errors against cases worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.classifiers.evaluation.statistics.calibration_error import (
    BINS,
    Floats,
    chance_calibration_error,
    classwise_calibration_error,
    expected_calibration_error,
    merge_bins,
    reliability_bins,
)

rows = st.lists(st.tuples(st.floats(0, 1, width=32), st.booleans()), min_size=1, max_size=80).map(
    lambda pairs: (floats(share for share, _ in pairs), np.asarray([hit for _, hit in pairs]))
)


def floats(values: object) -> Floats:
    return np.asarray(list(values), dtype=np.float32)  # type: ignore[call-overload]


def test_expected_calibration_error_by_hand() -> None:
    correct = np.asarray([True] * 6 + [False] * 4)
    assert expected_calibration_error(floats([0.9] * 10), correct) == pytest.approx(0.3, abs=1e-6)


def test_classwise_calibration_error_sees_what_averaging_over_predictions_hides() -> None:
    """Half of the rows too sure of one label, half too sure of the other: predictions even out."""
    probabilities = floats([[0.55, 0.45]] * 100)
    truth = np.asarray([0] * 90 + [1] * 10)
    assert classwise_calibration_error(probabilities, truth) == pytest.approx(0.35)
    correct = np.asarray(([True] * 9 + [False]) * 10 + ([True] * 3 + [False] * 7) * 10)
    assert expected_calibration_error(floats([0.6] * 200), correct) == pytest.approx(0, abs=1e-6)
    rare = np.repeat([[0.4, 0.6], [0.6, 0.4]], 100, axis=0).astype(np.float32)
    predicted = np.repeat([1, 0], 100)
    codes = np.where(correct, predicted, 1 - predicted)
    assert classwise_calibration_error(rare, codes) == pytest.approx(0.3, abs=1e-6)


@pytest.mark.parametrize(("count", "expected"), [(20, 0.097), (80, 0.052), (600, 0.019)])
def test_chance_calibration_error_of_a_calibrated_model(count: int, expected: float) -> None:
    confidence = np.random.default_rng(0).beta(6, 1.2, size=count).astype(np.float32) / 2 + 0.5
    mean, high = chance_calibration_error(confidence)
    assert mean == pytest.approx(expected, rel=0.2)
    assert mean < high < 2.5 * mean


def test_chance_calibration_error_is_the_same_twice() -> None:
    confidence = floats([0.7, 0.8, 0.99])
    assert chance_calibration_error(confidence) == chance_calibration_error(confidence)


def test_a_confident_model_that_is_always_right_has_no_error() -> None:
    assert expected_calibration_error(floats([1.0] * 5), np.ones(5, np.bool_)) == 0


@given(rows)
def test_expected_calibration_error_is_a_share(pairs: tuple[Floats, np.ndarray]) -> None:
    assert 0 <= expected_calibration_error(*pairs) <= 1


@given(rows)
def test_expected_calibration_error_is_the_mean_gap_of_the_bins(
    pairs: tuple[Floats, np.ndarray],
) -> None:
    bins = reliability_bins(*pairs)
    total = sum(entry["count"] for entry in bins)
    gap = sum(entry["count"] * abs(entry["accuracy"] - entry["confidence"]) for entry in bins)
    assert expected_calibration_error(*pairs) == pytest.approx(gap / total, abs=1e-5)


@given(rows)
def test_reliability_bins_hold_every_row_once_in_order(pairs: tuple[Floats, np.ndarray]) -> None:
    bins = reliability_bins(*pairs)
    assert sum(entry["count"] for entry in bins) == len(pairs[0])
    assert len(bins) <= BINS
    confidence = [entry["confidence"] for entry in bins]
    assert confidence == sorted(confidence)
    for entry in bins:
        assert 0 <= entry["low"] <= entry["accuracy"] + 1e-9 <= entry["high"] + 2e-9


@given(rows, st.integers(1, 40))
def test_merged_bins_hold_enough_rows_and_every_row(
    pairs: tuple[Floats, np.ndarray], least: int
) -> None:
    bins = reliability_bins(*pairs)
    merged = merge_bins(bins, least=least)
    counts = [one["count"] for one in merged]
    assert sum(counts) == len(pairs[0])
    assert len(merged) == 1 or min(counts) >= least
    confidence = [one["confidence"] for one in merged]
    assert confidence == sorted(confidence)
    right = sum(one["count"] * one["accuracy"] for one in merged)
    assert right == pytest.approx(pairs[1].sum())
