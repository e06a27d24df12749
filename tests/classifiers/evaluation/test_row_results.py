"""What is kept of each row."""

import numpy as np
import pytest

from apps.classifiers.evaluation.calibration import softmax
from apps.classifiers.evaluation.row_results import PredictedRows

LOGITS = np.asarray([[2.0, 0.0, -1.0], [0.5, 0.0, 0.2]], dtype=np.float32)


def side(favour: list[float] | None = None) -> PredictedRows:
    return PredictedRows.from_logits(
        index=[0, 1],
        source=[0, 0],
        keys=[1, 2],
        truth=np.asarray([0, 1]),
        logits=LOGITS,
        temperature=2.0,
        favour=None if favour is None else np.asarray(favour, dtype=np.float32),
    )


def test_row_results_hold_label_confidence_and_margin() -> None:
    found, probabilities = side(), softmax(LOGITS, 2.0)
    assert found.predicted.tolist() == [0, 0]
    assert found.confidence.tolist() == pytest.approx(probabilities[:, 0].tolist())
    assert found.label_probability.tolist() == pytest.approx(
        [probabilities[0, 0], probabilities[1, 1]]
    )
    assert found.margin[1] == pytest.approx(probabilities[1, 0] - probabilities[1, 2])


def test_a_favoured_label_is_given_with_its_own_probability() -> None:
    found, probabilities = side([0.0, 1.0, 0.0]), softmax(LOGITS, 2.0)
    assert found.predicted.tolist() == [0, 1]
    assert found.confidence.tolist() == pytest.approx([probabilities[0, 0], probabilities[1, 1]])
    weighed = softmax(LOGITS + np.asarray([0, 1, 0], dtype=np.float32), 2.0)
    assert found.margin[1] == pytest.approx(weighed[1, 1] - weighed[1, 0])
