"""The two gates on rows whose answer is known."""

import numpy as np
import pytest

from apps.classifiers import gates
from apps.classifiers.gates import Gate, Gates

SURE = np.asarray([0.9, 0.8, 0.4, 0.3], dtype=np.float32)
LOGITS = np.asarray([5.0, 1.0, 4.0, 0.5], dtype=np.float32)
RIGHT = np.asarray([True, False, True, False])


@pytest.mark.parametrize(
    ("confidence", "max_logit", "gate"),
    [
        (0.9, 5.0, Gate.OPEN),
        (0.4, 5.0, Gate.UNSURE),
        (0.9, 1.0, Gate.NONE),
        (0.4, 1.0, Gate.NONE),  # what is like nothing is not merely between two labels
        (0.5, 2.0, Gate.OPEN),
    ],
)
def test_two_reasons_not_to_answer(confidence: float, max_logit: float, gate: Gate) -> None:
    assert Gates(0.5, 0.99, 2.0).decide(confidence, max_logit) == gate


def test_what_they_cost() -> None:
    found = gates.passed(
        SURE,
        LOGITS,
        RIGHT,
        Gates(0.5, 0.9, 0.8),
        strange_confidence=np.asarray([0.9, 0.2], dtype=np.float32),
        strange_max_logit=np.asarray([3.0, 3.0], dtype=np.float32),
    )
    assert (found.answered, found.right, found.unsure, found.none) == (2, 1, 1, 1)
    assert (found.coverage, found.precision, found.recall) == (0.5, 0.5, 0.5)


def test_open_gates_let_everything_through() -> None:
    found = gates.passed(SURE, LOGITS, RIGHT, Gates(0.0, 1.0, gates.threshold(LOGITS, 1.0)))
    assert (found.coverage, found.precision, found.recall) == (1.0, 0.5, None)


def test_gates_that_let_nothing_through_have_no_precision() -> None:
    assert gates.passed(SURE, LOGITS, RIGHT, Gates(1.0, 0.9, 9.0)).precision is None


def test_the_threshold_keeps_the_share_it_says() -> None:
    logits = np.random.default_rng(0).normal(size=10_000).astype(np.float32)
    for kept in (0.9, 0.99):
        assert (logits >= gates.threshold(logits, kept)).mean() == pytest.approx(kept, abs=0.001)


def test_strangers_choose_how_many_to_keep() -> None:
    random = np.random.default_rng(0)
    inside = random.normal(4, 1, 2000).astype(np.float32)
    assert gates.best_kept(inside, random.normal(-4, 1, 200).astype(np.float32)) > 0.99
    overlapping = gates.best_kept(inside, random.normal(3, 1, 200).astype(np.float32))
    assert gates.KEPT_AT_LEAST <= overlapping < 0.99
    assert gates.area(inside, inside) == pytest.approx(0.5)
    assert gates.area(inside, inside - 100) == 1.0


def test_they_survive_json() -> None:
    for chosen in (Gates(0.4, 0.97, 1.5), Gates(0.4, 1.0, -np.inf)):
        assert Gates.read(chosen.as_dict()) == chosen
    assert Gates.read({}) == Gates()
