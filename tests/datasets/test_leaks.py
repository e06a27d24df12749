"""Near copies by embedding, and the fair split: pure parts."""

import numpy as np
import pytest

from apps.datasets import leaks
from apps.datasets.leaks import Pair, near_pairs
from apps.datasets.splitting import hold_out


def unit(*rows: list[float]) -> leaks.Vectors:
    vectors = np.asarray(rows, dtype=np.float32)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


TRAIN = unit([1, 0, 0], [0, 1, 0], [0, 0.1, 1])


def test_each_row_with_its_nearest_the_nearest_first() -> None:
    test = unit([1, 0.1, 0], [0, 0, 1], [1, 1, 1])
    pairs = near_pairs(test, TRAIN)
    assert [(pair.a, pair.b) for pair in pairs] == [(0, 0), (1, 2)]
    assert pairs[0].cosine == pytest.approx(0.99504, abs=1e-4)


def test_within_one_set_each_pair_is_found_once() -> None:
    rows = unit([1, 0, 0], [0, 1, 0], [1, 0.01, 0], [0, 1, 0.01])
    assert [(pair.a, pair.b) for pair in near_pairs(rows)] == [(0, 2), (1, 3)]


def test_equal_texts_are_no_near_copies() -> None:
    rows = unit([1, 0, 0], [1, 0, 0], [1, 0.01, 0])
    keys = np.asarray([5, 5, 6])
    assert [(pair.a, pair.b) for pair in near_pairs(rows, same=(keys, keys))] == [(0, 2), (1, 2)]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    a = unit(*random.normal(size=(60, 4)).tolist())
    b = unit(*random.normal(size=(50, 4)).tolist())
    whole = near_pairs(a, b, threshold=0.9), near_pairs(a, threshold=0.9)
    monkeypatch.setattr(leaks, "BLOCK_BYTES", 1_000)
    pieces = near_pairs(a, b, threshold=0.9), near_pairs(a, threshold=0.9)
    for one, other in zip(whole, pieces, strict=True):
        assert [(p.a, p.b) for p in one] == [(p.a, p.b) for p in other]
        assert len(one) > 3


def test_limits_and_edges() -> None:
    assert near_pairs(TRAIN, TRAIN, limit=2) == [Pair(0, 0, 1.0), Pair(1, 1, 1.0)]
    assert near_pairs(TRAIN[:0], TRAIN) == []
    with pytest.raises(ValueError, match="cannot be compared"):
        near_pairs(TRAIN, TRAIN[:, :2])


def test_a_split_takes_its_share_of_each_label() -> None:
    labels = ["a"] * 50 + ["b"] * 10 + ["c"] * 2 + ["d"]
    test = hold_out(labels, list(range(63)), share=0.2, seed=0)
    taken = [sum(t for t, name in zip(test, labels, strict=True) if name == x) for x in "abcd"]
    assert taken == [10, 2, 1, 0]
    assert (hold_out(labels, list(range(63)), share=0.2, seed=0) == test).all()
    assert (hold_out(labels, list(range(63)), share=0.2, seed=1) != test).any()


def test_a_split_keeps_groups_whole() -> None:
    keys = [n % 7 for n in range(70)]
    test = hold_out(["a"] * 70, keys, share=0.3, seed=0)
    assert {key for key, t in zip(keys, test, strict=True) if t}.isdisjoint(
        key for key, t in zip(keys, test, strict=True) if not t
    )


def test_a_split_of_nothing() -> None:
    assert hold_out([], [], share=0.2, seed=0).tolist() == []
