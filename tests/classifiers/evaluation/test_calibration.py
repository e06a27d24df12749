"""The temperature: what holds for any logits, and what few mistakes do to it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.classifiers.evaluation.calibration import COLDEST, HOTTEST, calibrate, softmax
from apps.classifiers.evaluation.statistics.metrics import log_loss


def drawn(rows: int, labels: int, *, lift: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits by lot, those of the true label lifted."""
    random = np.random.default_rng(seed)
    codes = np.arange(rows) % labels
    logits = (random.normal(size=(rows, labels)) * 5).astype(np.float32)
    logits[np.arange(rows), codes] += np.float32(lift)
    return logits, codes


def test_with_many_rows_it_is_the_likeliest() -> None:
    logits, codes = drawn(4000, 4, lift=4, seed=2)
    best = calibrate(logits, codes)
    losses = [log_loss(softmax(logits, best.temperature * by), codes) for by in (0.95, 1, 1.05)]
    assert losses[1] == min(losses)
    assert not best.at_bound


@pytest.mark.parametrize(("rows", "most"), [(8, 5 / 6), (20, 11 / 12), (2000, 1001 / 1002)])
def test_without_a_mistake_it_is_as_sure_as_the_rows_allow(rows: int, most: float) -> None:
    """Platt's targets by hand: n right texts of a label are worth (n + 1) / (n + 2)."""
    codes = np.arange(rows) % 2
    logits = np.where(codes[:, None] == np.arange(2), 3.0, -3.0).astype(np.float32)
    found = calibrate(logits, codes)
    assert softmax(logits, found.temperature).max(axis=1).mean() == pytest.approx(most, abs=1e-4)


@pytest.mark.parametrize("lift", [0.0, -50.0])
def test_logits_that_say_nothing_are_flagged(lift: float) -> None:
    logits, codes = drawn(40, 2, lift=lift, seed=0)
    found = calibrate(np.zeros_like(logits) if lift == 0 else logits, codes)
    assert found.at_bound
    assert softmax(logits * 0, found.temperature).max() == 0.5


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(4, 120),
    labels=st.integers(2, 6),
    lift=st.floats(-5, 60),
    scale=st.floats(0.01, 100),
    seed=st.integers(0, 2**20),
)
def test_calibrate_stays_in_bounds_for_any_logits(
    rows: int, labels: int, lift: float, scale: float, seed: int
) -> None:
    logits, codes = drawn(rows, labels, lift=lift, seed=seed)
    logits *= np.float32(scale)
    found = calibrate(logits, codes)
    assert COLDEST <= found.temperature <= HOTTEST
    assert np.isfinite(found.losses).all()
    assert found.loss > 0
    if not found.at_bound:
        # Platt's targets leave a doubt that no temperature gets below: their entropy.
        texts = np.bincount(codes, minlength=labels)[codes]
        targets = (texts + 1) / (texts + 2)
        entropy = -(targets * np.log(targets) + (1 - targets) * np.log(1 - targets))
        assert found.loss >= entropy.mean() - 1e-5
        # Multiplying all logits changes the temperature and nothing else.
        if COLDEST * 2.1 < found.temperature < HOTTEST / 2.1:
            again = calibrate(logits * np.float32(2), codes)
            assert again.temperature == pytest.approx(2 * found.temperature, rel=1e-3)


def test_a_shift_is_added_after_the_division() -> None:
    """Two labels whose logits were made for equal shares, on rows of which one in ten is of one."""
    random = np.random.default_rng(3)
    codes = (random.random(5000) < 0.1).astype(np.int64)
    score = np.where(codes == 1, 1.0, -1.0) + random.normal(size=5000)
    logits = np.stack([-score, score], axis=1).astype(np.float32) * 3
    shift = np.log(np.asarray([0.9, 0.1], dtype=np.float32))
    found = calibrate(logits, codes, shift=shift)
    # Of two normal clouds one apart from the middle the log-odds are 2 * score.
    assert found.temperature == pytest.approx(3, rel=0.1)
    mean = softmax(logits / np.float32(found.temperature) + shift)[:, 1].mean()
    assert mean == pytest.approx(0.1, abs=0.01)
