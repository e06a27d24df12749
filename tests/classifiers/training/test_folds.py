import numpy as np
import pytest

from apps.classifiers.training.folds import deal_folds, text_groups

RANDOM = np.random.default_rng(1)
LABELS = np.sort(RANDOM.integers(0, 20, 1000)).astype(np.int64)
GROUPS = np.where(RANDOM.random(1000) < 0.2, np.arange(1000) // 7 * 7, np.arange(1000))


def test_same_text_same_group() -> None:
    assert text_groups(["a", "b", "a"]).tolist() == [0, 1, 0]


@pytest.mark.parametrize("seed", range(3))
def test_a_group_is_never_split(seed: int) -> None:
    folds = deal_folds(LABELS, GROUPS, folds=5, seed=seed)
    for group in np.unique(GROUPS):
        assert len(set(folds[group == GROUPS])) == 1


def test_folds_are_stratified_and_even() -> None:
    folds = deal_folds(LABELS, np.arange(1000), folds=5, seed=0)
    assert np.bincount(folds).tolist() == [200] * 5
    for label in range(20):
        counts = np.bincount(folds[label == LABELS], minlength=5)
        assert counts.max() - counts.min() <= 1


def test_every_label_is_trained_in_every_fold() -> None:
    labels = np.repeat(np.arange(30), 2)
    folds = deal_folds(labels, np.arange(60), folds=5, seed=0)
    for fold in range(5):
        assert set(labels[folds != fold]) == set(range(30))


def test_the_seed_decides() -> None:
    same = [deal_folds(LABELS, GROUPS, folds=5, seed=seed).tolist() for seed in (0, 0, 1)]
    assert same[0] == same[1] != same[2]
