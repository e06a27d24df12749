"""The search of the best width, on curves as servers have them."""

import math
import random
from collections.abc import Callable

import pytest

from apps.tuning.sweep.best_width import BestWidthSearch, Rate

Curve = Callable[[int], float]


def saturating(full: float) -> Curve:
    """A server that is full with so many sequences, and gets no faster with more."""
    return lambda width: 100 * min(width, full)


def bent(half: float) -> Curve:
    return lambda width: 1000 * width / (width + half)


def peaked(peak: int) -> Curve:
    """More than so many sequences are slower: of a server whose memory spills over."""
    return lambda width: 100 * width * math.exp(-width / peak)


def stepped(width: int) -> float:
    """Kernels that work on four sequences at once: 5 take as long as 8."""
    return 1000 * width / (10 + math.ceil(width / 4))


def fast_kernel(width: int) -> float:
    """As on GPUs: another kernel from 9 sequences on, slower at first."""
    return 100.0 * width if width <= 8 else 55.0 * width


CURVES: dict[str, Curve] = {
    "flat": lambda width: 100.0,
    "linear": lambda width: 10.0 * width,
    "falling": lambda width: 100 - width,
    "full with 3": saturating(3),
    "full with 11": saturating(11),
    "full with 24": saturating(24),
    "bent": bent(8),
    "nearly linear": bent(200),
    "peak at 6": peaked(6),
    "peak at 13": peaked(13),
    "stepped": stepped,
    "fast kernel": fast_kernel,
}


def search(curve: Curve, slots: int, noise: float = 0.0, seed: int = 0) -> BestWidthSearch:
    rng, found = random.Random(seed), BestWidthSearch(slots)
    while (width := found.next_width()) is not None:
        value = curve(width) * (1 + rng.gauss(0, noise))
        found.learn(width, Rate(value, noise * value))
    return found


@pytest.mark.parametrize("slots", [1, 2, 3, 4, 6, 8, 16, 32])
@pytest.mark.parametrize("name", CURVES)
def test_search_finds_a_width_within_three_percent(name: str, slots: int) -> None:
    curve = CURVES[name]
    found = search(curve, slots)
    best = max(curve(width) for width in range(1, slots + 1))
    assert found.best is not None
    assert curve(found.best) >= 0.97 * best
    assert sum(map(len, found.probes.values())) <= min(9, 2 * slots)


def test_search_of_many_slots_needs_few_probes() -> None:
    counts = [len(search(curve, 32).probes) for curve in CURVES.values()]
    assert max(counts) <= 8
    assert sum(counts) / len(counts) <= 5.5


def test_noisy_rates_are_measured_twice() -> None:
    exact, noisy = search(bent(8), 16), search(bent(8), 16, noise=0.01)
    assert all(len(rates) == 1 for rates in exact.probes.values())
    assert max(len(rates) for rates in noisy.probes.values()) > 1


@pytest.mark.parametrize("name", CURVES)
def test_search_bears_noise(name: str) -> None:
    """Of 40 searches with 1 % of noise nearly all are within 5 % of the best."""
    curve = CURVES[name]
    best = max(curve(width) for width in range(1, 17))
    found = [search(curve, 16, noise=0.01, seed=seed).best or 0 for seed in range(40)]
    assert sum(curve(width) >= 0.95 * best for width in found) >= 36


def test_search_prefers_the_narrowest_of_equal_widths() -> None:
    assert search(CURVES["flat"], 16).best == 1


def test_search_knows_nothing_before_its_first_probe() -> None:
    assert BestWidthSearch(4).best is None
    assert BestWidthSearch(4).next_width() == 4
