"""Numbers against scikit-learn's, and cases worked out by hand."""

import numpy as np
import pytest
from sklearn import metrics as reference  # noqa: TID251 - a second opinion

from apps.classifiers.evaluation import metrics as evaluation_metrics

RANDOM = np.random.default_rng(0)
TRUTH = RANDOM.integers(0, 5, 400)
LOGITS = (RANDOM.normal(size=(400, 5)) + 2 * np.eye(5)[TRUTH]).astype(np.float32)
LABELS = list("abcde")


def test_agrees_with_scikit_learn() -> None:
    report = evaluation_metrics.evaluate(LOGITS, TRUTH, LABELS, temperature=1.5)
    predicted = LOGITS.argmax(axis=1)
    probabilities = evaluation_metrics.softmax(LOGITS, 1.5)
    found = report.metrics
    assert found["accuracy"] == pytest.approx(reference.accuracy_score(TRUTH, predicted))
    assert found["macro_f1"] == pytest.approx(reference.f1_score(TRUTH, predicted, average="macro"))
    assert found["log_loss"] == pytest.approx(
        -np.log(probabilities[np.arange(len(TRUTH)), TRUTH]).mean(), rel=1e-5
    )
    assert report.matrix == reference.confusion_matrix(TRUTH, predicted).tolist()
    precision, recall, f1, support = reference.precision_recall_fscore_support(TRUTH, predicted)
    for place, entry in enumerate(report.per_class):
        assert entry["precision"] == pytest.approx(precision[place])
        assert entry["recall"] == pytest.approx(recall[place])
        assert entry["f1"] == pytest.approx(f1[place])
        assert entry["support"] == support[place]


@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662)],
)
def test_wilson(right: int, total: int, low: float, high: float) -> None:
    assert evaluation_metrics.wilson_interval(right, total) == pytest.approx((low, high), abs=1e-4)


def test_calibration_error_by_hand() -> None:
    probabilities = np.asarray([[0.9, 0.1]] * 10, dtype=np.float32)
    truth = np.asarray([0] * 6 + [1] * 4)
    assert evaluation_metrics.calibration_error(probabilities, truth) == pytest.approx(
        0.3, abs=1e-6
    )


def test_calibration_by_label_sees_what_averaging_over_answers_hides() -> None:
    """Half of the rows too sure of one label, half too sure of the other: the answers even out."""
    probabilities = np.asarray([[0.55, 0.45]] * 100, dtype=np.float32)
    truth = np.asarray([0] * 90 + [1] * 10)
    assert evaluation_metrics.classwise_calibration_error(probabilities, truth) == pytest.approx(
        0.35
    )
    sure = np.asarray([0.6] * 200, dtype=np.float32)
    right = np.asarray(([True] * 9 + [False]) * 10 + ([True] * 3 + [False] * 7) * 10)
    assert evaluation_metrics.expected_calibration_error(sure, right) == pytest.approx(0, abs=1e-6)
    rare = np.repeat([[0.4, 0.6], [0.6, 0.4]], 100, axis=0).astype(np.float32)
    given = np.repeat([1, 0], 100)
    codes = np.where(right, given, 1 - given)
    assert evaluation_metrics.calibration_error(rare, codes) == pytest.approx(0, abs=1e-6)
    assert evaluation_metrics.classwise_calibration_error(rare, codes) == pytest.approx(
        0.3, abs=1e-6
    )


def test_brier_by_hand() -> None:
    probabilities = evaluation_metrics.softmax(LOGITS, 1.5)
    expected = np.square(probabilities - np.eye(5)[TRUTH]).sum(axis=1).mean()
    assert evaluation_metrics.brier(probabilities, TRUTH) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("rows", "expected"), [(20, 0.097), (80, 0.052), (600, 0.019)])
def test_what_a_calibrated_model_would_show(rows: int, expected: float) -> None:
    sure = np.random.default_rng(0).beta(6, 1.2, size=rows).astype(np.float32) / 2 + 0.5
    mean, high = evaluation_metrics.chance_calibration_error(sure)
    assert mean == pytest.approx(expected, rel=0.2)
    assert mean < high < 2.5 * mean


def test_rows_of_unknown_labels_count_as_wrong_apart() -> None:
    found = evaluation_metrics.evaluate(LOGITS, TRUTH, LABELS, temperature=1.5, unseen=100).metrics
    assert found["rows"] == 400
    assert found["accuracy_with_unseen"] == pytest.approx(found["accuracy"] * 400 / 500)


def test_what_cannot_be_measured_is_none() -> None:
    matrix = np.asarray([[3, 1, 0], [0, 4, 0], [0, 0, 0]])
    absent = evaluation_metrics.label_metrics(matrix, ["a", "b", "c"])[2]
    assert (absent["precision"], absent["recall"], absent["f1"]) == (None, None, None)


def test_the_most_confused_pairs_come_first_with_their_rows() -> None:
    truth = np.asarray([0, 0, 0, 1, 1, 2])
    predicted = np.asarray([1, 1, 0, 1, 0, 2])
    first, second = evaluation_metrics.most_confused_pairs(truth, predicted, ["a", "b", "c"])
    assert (first["label"], first["predicted"], first["count"], first["support"]) == (
        "a",
        "b",
        2,
        3,
    )
    assert first["rows"] == [0, 1]
    assert (second["label"], second["predicted"], second["rows"]) == ("b", "a", [4])


def test_softmax_of_huge_logits_is_finite() -> None:
    probabilities = evaluation_metrics.softmax(np.asarray([[1e4, -1e4]], dtype=np.float32), 0.05)
    assert probabilities.tolist() == [[1.0, 0.0]]
