"""Copies on both sides, by cosine, on vectors whose neighbours are known."""

import numpy as np
import pytest

from apps.classifiers import leaks


def unit(count: int, dimensions: int = 16, seed: int = 0) -> leaks.Floats:
    vectors = np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def test_it_finds_each_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "BLOCK", 7)
    left, right = unit(50), unit(300, seed=1)
    right[123] = left[8]
    found = leaks.nearest(left, right)
    similar = left @ right.T
    assert np.array_equal(found.partner, similar.argmax(axis=1))
    assert np.allclose(found.cosine, similar.max(axis=1), atol=1e-6)
    assert found.partner[8] == 123
    assert found.near[8]
    assert np.flatnonzero(found.near).tolist() == [8]


def test_too_many_rows_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "MOST_PAIRS", 1000)
    found = leaks.nearest(unit(50), unit(100, seed=1))
    assert len(found.rows) == 10
    assert len(set(found.rows.tolist())) == 10


def test_nothing_to_compare_with() -> None:
    assert len(leaks.nearest(unit(0), unit(5)).rows) == 0


def test_copies_and_conflicts() -> None:
    groups = np.asarray([0, 1, 0, 2, 1, 0])
    labels = np.asarray([0, 1, 0, 1, 0, 0])
    assert leaks.copies(groups) == 3
    assert leaks.conflicts(groups, labels) == 1
