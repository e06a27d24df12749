"""Metrics of a classifier on test rows, by scikit-learn. Arrays in, numbers out."""

from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.evaluation.calibration import softmax
from apps.classifiers.evaluation.statistics.calibration_error import (
    ReliabilityBin,
    chance_calibration_error,
    classwise_calibration_error,
    expected_calibration_error,
    reliability_bins,
)
from apps.core.statistics.confidence_interval import wilson_interval

Floats = NDArray[np.float32]
Codes = NDArray[np.int64]


class Metrics(TypedDict):
    rows: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    macro_f1: float
    log_loss: float
    log_loss_uncalibrated: float
    ece: float
    """Of the label it gives: how far its confidence is from how often it is right."""
    ece_uncalibrated: float
    ece_expected: float
    """What a perfectly calibrated model would show on as many rows, on average ..."""
    ece_expected_high: float
    """... and in 1 of 20 draws more than this."""
    ece_by_label: float
    """Of the probability of each label whether it is given or not, mean over labels."""
    brier: float
    unseen_rows: int
    """Test rows of labels that are never trained: in no other number but the next."""
    accuracy_with_unseen: float
    """The accuracy where these count as wrong."""
    majority_baseline: float
    majority_label: str
    random_baseline: float
    """Drawing labels as often as they occur."""


class LabelMetrics(TypedDict):
    label: str
    precision: float | None
    recall: float | None
    f1: float | None
    support: int
    predicted: int


@dataclass(frozen=True, slots=True)
class ClassificationReport:
    metrics: Metrics
    per_class: list[LabelMetrics]
    matrix: list[list[int]]
    """Rows: the true label; columns: the predicted one."""
    reliability: list[ReliabilityBin]


def classification_report(
    logits: Floats,
    truth: Codes,
    labels: list[str],
    *,
    temperature: float,
    predicted: Codes | None = None,
    unseen: int = 0,
) -> ClassificationReport:
    """Measure logits (n, len(labels)) against the true codes (n,).

    Args:
        predicted: (n,) the predicted codes, if they are not those with the largest logit.
        unseen: number of further test rows whose labels were never trained.
    """
    from sklearn.metrics import confusion_matrix  # noqa: TID251

    codes = logits.argmax(axis=1).astype(np.int64) if predicted is None else predicted
    raw, calibrated = softmax(logits), softmax(logits, temperature)
    return ClassificationReport(
        _metrics(raw, calibrated, truth, codes, labels, unseen),
        label_metrics(truth, codes, labels),
        confusion_matrix(truth, codes, labels=np.arange(len(labels))).tolist(),
        reliability_bins(calibrated[np.arange(len(truth)), codes], codes == truth),
    )


def _metrics(
    raw: Floats, calibrated: Floats, truth: Codes, codes: Codes, labels: list[str], unseen: int
) -> Metrics:
    """Measure probabilities (n, len(labels)), before and after calibration, and the codes (n,)."""
    from sklearn.metrics import f1_score  # noqa: TID251

    rows = np.arange(len(truth))
    confidence, correct = calibrated[rows, codes], codes == truth
    right, support = int(correct.sum()), np.bincount(truth, minlength=len(labels))
    low, high = wilson_interval(right, len(truth))
    chance, chance_high = chance_calibration_error(confidence)
    return Metrics(
        rows=len(truth),
        accuracy=right / len(truth),
        accuracy_low=low,
        accuracy_high=high,
        macro_f1=float(f1_score(truth, codes, average="macro", zero_division=0.0)),
        log_loss=log_loss(calibrated, truth),
        log_loss_uncalibrated=log_loss(raw, truth),
        ece=expected_calibration_error(confidence, correct),
        ece_uncalibrated=expected_calibration_error(raw[rows, codes], correct),
        ece_expected=chance,
        ece_expected_high=chance_high,
        ece_by_label=classwise_calibration_error(calibrated, truth),
        brier=brier_score(calibrated, truth),
        unseen_rows=unseen,
        accuracy_with_unseen=right / (len(truth) + unseen),
        majority_baseline=float(support.max() / support.sum()),
        majority_label=labels[int(support.argmax())],
        random_baseline=float(((support / support.sum()) ** 2).sum()),
    )


def log_loss(probabilities: Floats, truth: Codes) -> float:
    from sklearn import metrics as sklearn_metrics  # noqa: TID251

    labels = np.arange(probabilities.shape[1])
    return float(sklearn_metrics.log_loss(truth, _normalised(probabilities), labels=labels))


def brier_score(probabilities: Floats, truth: Codes) -> float:
    """Return the mean squared error of the probabilities over all labels: 0 to 2 (Brier 1950)."""
    from sklearn.metrics import brier_score_loss  # noqa: TID251

    labels = np.arange(probabilities.shape[1])
    score = brier_score_loss(truth, _normalised(probabilities), labels=labels, scale_by_half=False)
    return float(score)


def _normalised(probabilities: Floats) -> NDArray[np.float64]:
    """Rows that sum to 1 in double precision, as scikit-learn checks."""
    exact = probabilities.astype(np.float64)
    normalised: NDArray[np.float64] = exact / exact.sum(axis=1, keepdims=True)
    return normalised


def label_metrics(truth: Codes, predicted: Codes, labels: list[str]) -> list[LabelMetrics]:
    """Precision, recall and F1 of each label; None if there is nothing to measure."""
    from sklearn.metrics import precision_recall_fscore_support  # noqa: TID251

    precision, recall, f1, support = precision_recall_fscore_support(
        truth, predicted, labels=np.arange(len(labels)), zero_division=np.nan
    )
    times_predicted = np.bincount(predicted, minlength=len(labels))
    return [
        LabelMetrics(
            label=label,
            precision=_number(precision[code]),
            recall=_number(recall[code]),
            f1=_number(f1[code]),
            support=int(support[code]),
            predicted=int(times_predicted[code]),
        )
        for code, label in enumerate(labels)
    ]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
