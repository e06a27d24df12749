"""Reports of a run against numbers worked out with numpy and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.classifiers.evaluation.calibration import softmax
from apps.classifiers.evaluation.confused_pairs import most_confused_pairs
from apps.classifiers.evaluation.statistics.metrics import (
    Codes,
    brier_score,
    classification_report,
    label_metrics,
    log_loss,
)

RANDOM = np.random.default_rng(0)
TRUTH = RANDOM.integers(0, 5, 400)
LOGITS = (RANDOM.normal(size=(400, 5)) + 2 * np.eye(5)[TRUTH]).astype(np.float32)
LABELS = list("abcde")

pairs_of_codes = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60
).map(lambda pairs: tuple(np.asarray(side, dtype=np.int64) for side in zip(*pairs, strict=True)))


def test_report_counts_right_rows() -> None:
    report = classification_report(LOGITS, TRUTH, LABELS, temperature=1.5)
    correct = LOGITS.argmax(axis=1) == TRUTH
    found = report.metrics
    assert (found["rows"], found["accuracy"]) == (400, pytest.approx(correct.mean()))
    assert found["accuracy_low"] < found["accuracy"] < found["accuracy_high"]
    assert sum(map(sum, report.matrix)) == 400
    assert sum(report.matrix[code][code] for code in range(5)) == correct.sum()
    assert sum(entry["count"] for entry in report.reliability) == 400


def test_report_takes_the_mean_of_f1_over_labels() -> None:
    report = classification_report(LOGITS, TRUTH, LABELS, temperature=1.5)
    scores = [entry["f1"] for entry in report.per_class]
    assert report.metrics["macro_f1"] == pytest.approx(np.mean([score or 0 for score in scores]))


def test_report_of_given_codes_measures_those() -> None:
    wrong = (TRUTH + 1) % 5
    report = classification_report(LOGITS, TRUTH, LABELS, temperature=1, predicted=wrong)
    assert report.metrics["accuracy"] == report.metrics["macro_f1"] == 0
    assert report.metrics["ece"] > 0


def test_report_counts_rows_of_unseen_labels_as_wrong_apart() -> None:
    found = classification_report(LOGITS, TRUTH, LABELS, temperature=1.5, unseen=100).metrics
    assert (found["rows"], found["unseen_rows"]) == (400, 100)
    assert found["accuracy_with_unseen"] == pytest.approx(found["accuracy"] * 400 / 500)


def test_report_names_the_baselines() -> None:
    truth = np.asarray([0, 0, 0, 1])
    logits = np.eye(2, dtype=np.float32)[truth]
    found = classification_report(logits, truth, ["card", "rate"], temperature=1).metrics
    assert (found["majority_label"], found["majority_baseline"]) == ("card", 0.75)
    assert found["random_baseline"] == pytest.approx(0.75**2 + 0.25**2)


def test_report_of_labels_without_test_rows_leaves_them_out_of_macro_f1() -> None:
    truth = np.asarray([0, 1])
    logits = np.asarray([[9, 0, 0], [0, 9, 0]], dtype=np.float32)
    report = classification_report(logits, truth, ["a", "b", "c"], temperature=1)
    assert report.metrics["macro_f1"] == 1
    assert report.per_class[2]["f1"] is None


def test_log_loss_by_hand() -> None:
    probabilities = softmax(LOGITS, 1.5)
    expected = -np.log(probabilities[np.arange(400), TRUTH]).mean()
    assert log_loss(probabilities, TRUTH) == pytest.approx(expected, rel=1e-5)


def test_log_loss_of_certain_rows_is_zero() -> None:
    found = log_loss(np.eye(3, dtype=np.float32), np.arange(3))
    assert found == pytest.approx(0, abs=1e-9)


def test_brier_score_by_hand() -> None:
    probabilities = softmax(LOGITS, 1.5)
    expected = np.square(probabilities - np.eye(5)[TRUTH]).sum(axis=1).mean()
    assert brier_score(probabilities, TRUTH) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("labels", [2, 3])
def test_brier_score_runs_from_0_to_2(labels: int) -> None:
    certain, truth = np.eye(labels, dtype=np.float32), np.arange(labels)
    assert brier_score(certain, truth) == pytest.approx(0)
    assert brier_score(certain, (truth + 1) % labels) == pytest.approx(2)


def test_label_metrics_are_none_if_there_is_nothing_to_measure() -> None:
    truth, predicted = np.asarray([0, 0, 0, 0, 1, 1]), np.asarray([0, 0, 0, 1, 1, 1])
    card, rate, absent = label_metrics(truth, predicted, ["card", "rate", "absent"])
    assert (card["precision"], card["recall"], card["support"]) == (1, 0.75, 4)
    assert (rate["precision"], rate["recall"], rate["predicted"]) == (pytest.approx(2 / 3), 1, 3)
    assert (absent["precision"], absent["recall"], absent["f1"]) == (None, None, None)
    assert (absent["support"], absent["predicted"]) == (0, 0)


@given(pairs_of_codes)
def test_label_metrics_agree_with_counting(pairs: tuple[Codes, Codes]) -> None:
    truth, predicted = pairs
    for code, entry in enumerate(label_metrics(truth, predicted, list("abcd"))):
        hits = int(((truth == code) & (predicted == code)).sum())
        support, times = int((truth == code).sum()), int((predicted == code).sum())
        assert (entry["support"], entry["predicted"]) == (support, times)
        assert entry["recall"] == (pytest.approx(hits / support) if support else None)
        assert entry["precision"] == (pytest.approx(hits / times) if times else None)
        both = support + times
        assert entry["f1"] == (pytest.approx(2 * hits / both) if both else None)


def test_most_confused_pairs_come_first_with_their_rows() -> None:
    truth = np.asarray([0, 0, 0, 1, 1, 2])
    predicted = np.asarray([1, 1, 0, 1, 0, 2])
    first, second = most_confused_pairs(truth, predicted, ["a", "b", "c"])
    assert (first.label, first.predicted) == ("a", "b")
    assert (first.count, first.support, first.rows) == (2, 3, [0, 1])
    assert (second.label, second.predicted, second.rows) == ("b", "a", [4])


@given(pairs_of_codes)
def test_most_confused_pairs_hold_every_mistake(pairs: tuple[Codes, Codes]) -> None:
    truth, predicted = pairs
    found = most_confused_pairs(truth, predicted, list("abcd"))
    assert sum(pair.count for pair in found) == int((truth != predicted).sum())
    counts = [pair.count for pair in found]
    assert counts == sorted(counts, reverse=True)
    for pair in found:
        assert pair.label != pair.predicted
        assert pair.count <= pair.support
        assert 1 <= len(pair.rows) <= 3


def test_most_confused_pairs_are_limited() -> None:
    truth, predicted = np.asarray([0, 1, 2, 3]), np.asarray([1, 2, 3, 0])
    assert len(most_confused_pairs(truth, predicted, list("abcd"), limit=2)) == 2


def test_softmax_of_huge_logits_is_finite() -> None:
    probabilities = softmax(np.asarray([[1e4, -1e4]], dtype=np.float32), 0.05)
    assert probabilities.tolist() == [[1.0, 0.0]]
