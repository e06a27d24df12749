"""Near-duplicates on vectors whose neighbours are known."""

import numpy as np
import pytest

from apps.similarity import cosine as room
from apps.similarity.cosine import Pair, Vectors, find_near_pairs, find_nearest


def unit(*rows: list[float]) -> Vectors:
    vectors = np.asarray(rows, dtype=np.float32)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


TRAIN = unit([1, 0, 0], [0, 1, 0], [0, 0.1, 1])


def test_each_row_with_its_nearest_the_nearest_first() -> None:
    test = unit([1, 0.1, 0], [0, 0, 1], [1, 1, 1])
    pairs = find_near_pairs(test, TRAIN)
    assert [(pair.a, pair.b) for pair in pairs] == [(0, 0), (1, 2)]
    assert pairs[0].cosine == pytest.approx(0.99504, abs=1e-4)


def test_within_one_set_each_pair_is_found_once() -> None:
    rows = unit([1, 0, 0], [0, 1, 0], [1, 0.01, 0], [0, 1, 0.01])
    assert [(pair.a, pair.b) for pair in find_near_pairs(rows)] == [(0, 2), (1, 3)]


def test_equal_texts_are_no_near_copies() -> None:
    rows = unit([1, 0, 0], [1, 0, 0], [1, 0.01, 0])
    keys = np.asarray([5, 5, 6])
    assert [(pair.a, pair.b) for pair in find_near_pairs(rows, same=(keys, keys))] == [
        (0, 2),
        (1, 2),
    ]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    a = unit(*random.normal(size=(60, 4)).tolist())
    b = unit(*random.normal(size=(50, 4)).tolist())
    whole = find_near_pairs(a, b, threshold=0.9), find_near_pairs(a, threshold=0.9)
    monkeypatch.setattr(room, "BLOCK", 1)
    pieces = find_near_pairs(a, b, threshold=0.9), find_near_pairs(a, threshold=0.9)
    for one, other in zip(whole, pieces, strict=True):
        assert [(p.a, p.b) for p in one] == [(p.a, p.b) for p in other]
        assert len(one) > 3


def test_find_near_pairs_keeps_its_limit_and_refuses_other_dimensions() -> None:
    assert find_near_pairs(TRAIN, TRAIN, limit=2) == [Pair(0, 0, 1.0), Pair(1, 1, 1.0)]
    assert find_near_pairs(TRAIN[:0], TRAIN) == []
    with pytest.raises(ValueError, match="cannot be compared"):
        find_near_pairs(TRAIN, TRAIN[:, :2])


def drawn(count: int, dimensions: int = 16, seed: int = 0) -> Vectors:
    return unit(*np.random.default_rng(seed).normal(size=(count, dimensions)).tolist())


def test_find_nearest_finds_the_nearest_of_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "BLOCK", 7)
    left, right = drawn(50), drawn(300, seed=1)
    right[123] = left[8]
    found = find_nearest(left, right)
    similar = left @ right.T
    assert np.array_equal(found.partner, similar.argmax(axis=1))
    assert np.allclose(found.cosine, similar.max(axis=1), atol=1e-6)
    assert found.partner[8] == 123
    assert found.is_near[8]
    assert np.flatnonzero(found.is_near).tolist() == [8]


def test_too_many_rows_are_sampled() -> None:
    found = find_nearest(drawn(50), drawn(100, seed=1), max_comparisons=1000)
    assert len(found.rows) == 10
    assert len(set(found.rows.tolist())) == 10


def test_find_nearest_finds_none_without_rows() -> None:
    assert len(find_nearest(drawn(1)[:0], drawn(5)).rows) == 0
