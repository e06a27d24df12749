"""Filter rows are put before a person."""

import numpy as np

from apps.classifiers.training.label_quality import label_errors
from apps.classifiers.training.label_quality.label_errors import Codes, Floats


def sure_logits(truth: Codes, labels: int, *, seed: int = 0) -> Floats:
    logits = np.random.default_rng(seed).normal(size=(len(truth), labels)).astype(np.float32)
    logits[np.arange(len(truth)), truth] += 6
    return logits


def test_flipped_labels_are_found() -> None:
    truth = np.repeat(np.arange(5), 200)
    logits = sure_logits(truth, 5)
    given = truth.copy()
    flipped = np.random.default_rng(1).choice(len(truth), 40, replace=False)
    given[flipped] = (given[flipped] + 1) % 5
    suspect, better, score = label_errors.find_label_errors(logits, given, temperature=1.0)
    found = label_errors.most_suspicious(suspect, score, limit=40)
    assert len(set(found.tolist()) & set(flipped.tolist())) >= 38
    assert np.array_equal(better[found], truth[found])


def test_clean_labels_are_left_alone() -> None:
    truth = np.repeat(np.arange(4), 100)
    suspect, _, _ = label_errors.find_label_errors(sure_logits(truth, 4), truth, temperature=1.0)
    assert suspect.mean() < 0.02


def test_chunks_change_nothing() -> None:
    truth = np.repeat(np.arange(4), 50)
    logits = sure_logits(truth, 4)
    whole = label_errors.find_label_errors(logits, np.roll(truth, 3), temperature=1.2)
    before, label_errors.CHUNK = label_errors.CHUNK, 17
    try:
        parts = label_errors.find_label_errors(logits, np.roll(truth, 3), temperature=1.2)
    finally:
        label_errors.CHUNK = before
    for one, other in zip(whole, parts, strict=True):
        assert np.allclose(one, other, atol=1e-5)


def test_near_copies_do_not_fill_the_queue() -> None:
    """Ten copies of the most uncertain row, and ten others a little less uncertain."""
    random = np.random.default_rng(0)
    vectors = random.normal(size=(20, 32)).astype(np.float32)
    vectors[:10] = vectors[0]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    margins = np.asarray([0.01] * 10 + [0.05] * 10, dtype=np.float32)
    chosen = label_errors.select_diverse_uncertain(margins, vectors, limit=8)
    assert len(set(chosen.tolist())) == 8
    assert sum(place < 10 for place in chosen.tolist()) == 1


def test_fewer_rows_than_the_limit_are_all_selected() -> None:
    vectors = np.eye(3, dtype=np.float32)
    margins = np.asarray([0.5, 0.1, 0.9], dtype=np.float32)
    chosen = label_errors.select_diverse_uncertain(margins, vectors, limit=10)
    assert chosen.tolist() == [1, 0, 2]
    empty = label_errors.select_diverse_uncertain(margins[:0], vectors[:0], limit=10)
    assert empty.tolist() == []
