"""How much slower a server is than in the week before, with an interval. Pure."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.tuning.hooks import Speeds

# Hours are what varies by itself: answers of one hour share its load.
FEWEST_HOURS = 6
RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Ratio:
    """The speed now, divided by that of the time before."""

    value: float
    low: float
    high: float
    """The 95 % interval: of resampled hours (bootstrap)."""


def ratio_of(speeds: Speeds) -> Ratio | None:
    """Compare the means of hours; None where there are too few, or the load grew."""
    if min(len(speeds.now), len(speeds.before)) < FEWEST_HOURS or speeds.is_busier:
        return None
    now, before = np.array(speeds.now), np.array(speeds.before)
    rng = np.random.default_rng(0)
    ratios = _means(now, rng) / _means(before, rng)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return Ratio(float(now.mean() / before.mean()), float(low), float(high))


def _means(values: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    means: NDArray[np.float64] = rng.choice(values, (RESAMPLES, len(values))).mean(axis=1)
    return means
