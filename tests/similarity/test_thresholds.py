"""What each threshold would leave of rows: similar to judging them In order."""

import random

import numpy as np
import pytest
from numpy.typing import NDArray

from apps.similarity import thresholds
from apps.similarity.dedup import NearDuplicateIndex
from apps.similarity.minhash import minhash_signature

WORDS = (
    *("kettle", "lamp", "boils", "water", "fast", "slow", "love"),
    *("hate", "good", "bad", "days", "weeks", "desk"),
)


def texts(count: int) -> list[str]:
    """Groups of texts that differ in a few words each."""
    rng = random.Random(5)
    found = []
    for _ in range(count // 5):
        words = rng.choices(WORDS, k=40)
        for _ in range(5):
            changed = [rng.choice(WORDS) if rng.random() < 0.06 else word for word in words]
            found.append(" ".join(changed))
    rng.shuffle(found)
    return found


def signatures(found: list[str]) -> NDArray[np.uint16]:
    return np.stack([one for text in found if (one := minhash_signature(text)) is not None])


@pytest.mark.parametrize("step", [60, 75, 90])
def test_the_same_as_one_after_the_other(step: int) -> None:
    array = signatures(texts(500))
    known = NearDuplicateIndex()
    kept = [
        known.find_or_add(at, signature, step / 100) is None for at, signature in enumerate(array)
    ]
    found = thresholds.evaluate(500, thresholds.pair_signatures(array), [False] * 500).kept_at(step)
    assert 100 <= sum(kept) <= 450
    # The job compares fewer pairs while it runs: at 60 % it misses some.
    differ = int((found != np.array(kept)).sum())
    assert differ <= {60: 40, 75: 5, 90: 0}[step]
    exact = judged_exactly(array, step)
    assert int((found != exact).sum()) <= {60: 6, 75: 1, 90: 0}[step]


def judged_exactly(array: NDArray[np.uint16], step: int) -> NDArray[np.bool_]:
    kept: list[int] = []
    for at, signature in enumerate(array):
        shares = (array[kept] == signature).mean(axis=1)
        if not (shares >= step / 100 - 1e-6).any():
            kept.append(at)
    return np.isin(np.arange(len(array)), kept)


def test_what_resembles_only_a_row_that_goes_stays() -> None:
    pairs = thresholds.SimilarPairs(np.array([1, 2]), np.array([0, 1]), np.array([0.9, 0.8]))
    verdicts = thresholds.evaluate(3, pairs, [False] * 3)
    assert verdicts.kept_at(95).tolist() == [True, True, True]
    assert verdicts.kept_at(85).tolist() == [True, False, True]
    assert verdicts.kept_at(75).tolist() == [True, False, True]
    assert verdicts.duplicates_at(75) == {1: (0, 0.9)}
    assert thresholds.evaluate(3, pairs, [False, True, False]).kept_at(75).tolist() == [
        True,
        True,
        False,
    ]


def test_the_histogram_counts_each_row_once() -> None:
    pairs = thresholds.SimilarPairs.strongest(
        np.array([2, 2, 3]), np.array([0, 1, 2]), np.array([0.5, 0.901, 1.0])
    )
    counts = thresholds.histogram(np.array([False, True, True, True]), pairs)
    assert {step: n for step, n in zip(thresholds.STEPS, counts, strict=True) if n} == {
        90: 1,
        100: 1,
    }


def test_vectors_are_all_compared() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(1500, 16)).astype(np.float32)
    vectors[1400] = vectors[3]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = thresholds.pair_vectors(vectors)
    assert (pairs.later > pairs.earlier).all()
    (one,) = thresholds.evaluate(1500, pairs, [False] * 1500).duplicates_at(100).items()
    later, (earlier, share) = one
    assert (later, earlier) == (1400, 3)
    assert share == pytest.approx(1)
    best = int(pairs.earlier[np.searchsorted(pairs.later, 1499)])
    assert best == int((vectors[:1499] @ vectors[1499]).argmax())


def test_nothing_to_compare() -> None:
    for pairs in (
        thresholds.pair_signatures(np.zeros((0, 128), dtype=np.uint16)),
        thresholds.pair_vectors(np.zeros((0, 1), dtype=np.float32)),
        thresholds.pair_signatures(np.zeros((1, 128), dtype=np.uint16)),
    ):
        assert not len(pairs.later)
        assert sum(thresholds.histogram(np.ones(1, dtype=bool), pairs)) == 0
