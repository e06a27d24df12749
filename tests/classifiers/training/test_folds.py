import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.classifiers.training.folds import Codes, deal_folds, text_groups

RANDOM = np.random.default_rng(1)
LABELS = np.sort(RANDOM.integers(0, 20, 1000)).astype(np.int64)
GROUPS = np.where(RANDOM.random(1000) < 0.2, np.arange(1000) // 7 * 7, np.arange(1000))

# Texts of a few letters, so that some are the same; each with one of three labels.
texts = st.lists(st.tuples(st.text("ab", max_size=3), st.integers(0, 2)), min_size=2, max_size=60)


def codes(pairs: list[tuple[str, int]]) -> tuple[Codes, Codes]:
    groups = text_groups([text for text, _ in pairs])
    return np.asarray([label for _, label in pairs], dtype=np.int64), groups


def largest(labels: Codes, groups: Codes) -> int:
    _, first = np.unique(groups, return_index=True)
    return int(np.bincount(labels[first]).max())


def test_text_groups_number_the_same_text_alike() -> None:
    assert text_groups(["a", "b", "a"]).tolist() == [0, 1, 0]
    assert text_groups([]).tolist() == []


@pytest.mark.parametrize("seed", range(3))
def test_deal_folds_never_splits_a_group(seed: int) -> None:
    folds = deal_folds(LABELS, GROUPS, folds=5, seed=seed)
    for group in np.unique(GROUPS):
        assert len(set(folds[group == GROUPS])) == 1


@given(texts, st.integers(0, 5))
def test_deal_folds_keeps_each_text_on_one_side(pairs: list[tuple[str, int]], seed: int) -> None:
    labels, groups = codes(pairs)
    if largest(labels, groups) < 2:
        return  # no label has two texts: nothing to divide
    folds = deal_folds(labels, groups, folds=5, seed=seed)
    assert folds.shape == labels.shape
    for fold in np.unique(folds):
        held_out = {text for (text, _), out in zip(pairs, folds == fold, strict=True) if out}
        trained = {text for (text, _), out in zip(pairs, folds == fold, strict=True) if not out}
        assert not held_out & trained


def test_deal_folds_is_stratified_and_even() -> None:
    folds = deal_folds(LABELS, np.arange(1000), folds=5, seed=0)
    counts = np.bincount(folds)
    assert len(counts) == 5
    assert counts.max() - counts.min() <= 1
    for label in range(20):
        counts = np.bincount(folds[label == LABELS], minlength=5)
        assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("per_label", [2, 3, 5])
def test_deal_folds_leaves_every_label_to_train_on(per_label: int) -> None:
    labels = np.repeat(np.arange(30), per_label)
    folds = deal_folds(labels, np.arange(len(labels)), folds=5, seed=0)
    assert len(np.unique(folds)) == min(5, per_label)
    for fold in np.unique(folds):
        assert set(labels[folds != fold]) == set(range(30))


def test_deal_folds_is_decided_by_the_seed() -> None:
    same = [deal_folds(LABELS, GROUPS, folds=5, seed=seed).tolist() for seed in (0, 0, 1)]
    assert same[0] == same[1] != same[2]
