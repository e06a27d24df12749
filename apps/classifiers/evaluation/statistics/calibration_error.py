"""How far confidence is from accuracy, and how far chance alone would put it. Pure numpy."""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from apps.core.statistics.confidence_interval import wilson_interval

Floats = NDArray[np.float32]
Codes = NDArray[np.int64]

BINS = 15
DRAWS = 200
LEAST_ROWS = 20  # of a point in a diagram: of fewer the interval spans most of it


class ReliabilityBin(TypedDict):
    """Predictions of like confidence: how often they were right."""

    confidence: float
    accuracy: float
    count: int
    low: float
    high: float


def reliability_bins(
    sure: Floats, right: NDArray[np.bool_], *, bins: int = BINS
) -> list[ReliabilityBin]:
    """Answers by confidence, in `bins` equal steps from 0 to 1; empty steps are left out.

    Args:
        sure: (n,) the confidence of each answer.
        right: (n,)
    """
    confidence = sure.astype(np.float64)
    step = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    found: list[ReliabilityBin] = []
    for number in range(bins):
        inside = step == number
        if inside.any():
            count, hits = int(inside.sum()), int(right[inside].sum())
            low, high = wilson_interval(hits, count)
            found.append(
                ReliabilityBin(
                    confidence=float(confidence[inside].mean()),
                    accuracy=hits / count,
                    count=count,
                    low=low,
                    high=high,
                )
            )
    return found


def merge_bins(bins: Sequence[ReliabilityBin], *, least: int = LEAST_ROWS) -> list[ReliabilityBin]:
    """Merge neighbouring bins until each holds `least` rows, or one bin holds all.

    The bin of the lowest confidence takes in what is left over.
    """
    merged: list[ReliabilityBin] = []
    waiting: list[ReliabilityBin] = []
    for one in sorted(bins, key=lambda one: -one["confidence"]):
        waiting.append(one)
        if sum(part["count"] for part in waiting) >= least:
            merged.append(_merged(waiting))
            waiting = []
    if waiting:
        merged = [*merged[:-1], _merged([*merged[-1:], *waiting])]
    return merged[::-1]


def _merged(bins: Sequence[ReliabilityBin]) -> ReliabilityBin:
    count = sum(one["count"] for one in bins)
    hits = sum(round(one["count"] * one["accuracy"]) for one in bins)
    low, high = wilson_interval(hits, count)
    return ReliabilityBin(
        confidence=sum(one["count"] * one["confidence"] for one in bins) / count,
        accuracy=hits / count,
        count=count,
        low=low,
        high=high,
    )


def expected_calibration_error(sure: Floats, right: NDArray[np.bool_]) -> float:
    """From the confidence of each answer and whether it was right: (n,)."""
    return _mean_gap(sure, right.astype(np.float64) - sure)


def classwise_calibration_error(probabilities: Floats, truth: Codes) -> float:
    """The calibration error of each label's own probability, mean over labels: what averaging over
    the answers alone hides (Kull et al. 2019, "Beyond temperature scaling", classwise-ECE)."""
    errors = [
        expected_calibration_error(probabilities[:, label], truth == label)
        for label in range(probabilities.shape[1])
    ]
    return float(np.mean(errors))


def chance_calibration_error(sure: Floats, *, seed: int = 0) -> tuple[float, float]:
    """Return the mean and 95th percentile of the calibration error that chance alone shows: of a
    model that is right exactly as often as it says. Never 0, and large on
    few rows (consistency resampling, Vaicenavicius et al. 2019).

    Args:
        sure: (n,) the confidence of each answer.
    """
    random = np.random.default_rng(seed)
    keep = sure.astype(np.float64)
    found = [_mean_gap(sure, (random.random(len(keep)) < keep) - keep) for _ in range(DRAWS)]
    return float(np.mean(found)), float(np.quantile(found, 0.95))


def _mean_gap(sure: Floats, gaps: NDArray[np.float64]) -> float:
    """Right or not (0, 1) minus confidence, averaged within bins and then over rows."""
    step = np.minimum((sure.astype(np.float64) * BINS).astype(np.int64), BINS - 1)
    return float(np.abs(np.bincount(step, weights=gaps, minlength=BINS)).sum() / len(sure))
