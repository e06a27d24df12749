"""What a classifier is worth, from its probabilities on rows it never saw. Pure numpy."""

from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Codes = NDArray[np.int64]

BINS = 15
Z = 1.959964  # 95 %


class Metrics(TypedDict):
    rows: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    macro_f1: float
    log_loss: float
    log_loss_uncalibrated: float
    ece: float
    ece_uncalibrated: float
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


class Confused(TypedDict):
    """Rows of one label that were taken for another."""

    label: str
    predicted: str
    count: int
    support: int
    rows: list[int]


class Bin(TypedDict):
    """Predictions of like confidence: how often they were right."""

    confidence: float
    accuracy: float
    count: int


@dataclass(frozen=True, slots=True)
class Report:
    metrics: Metrics
    per_class: list[LabelMetrics]
    matrix: list[list[int]]
    """Rows: the true label; columns: the predicted one."""
    reliability: list[Bin]


def softmax(logits: Floats, temperature: float = 1.0) -> Floats:
    """Probabilities per row: (n, labels)."""
    scaled = logits / np.float32(temperature)
    scaled -= scaled.max(axis=1, keepdims=True)
    np.exp(scaled, out=scaled)
    scaled /= scaled.sum(axis=1, keepdims=True)
    return scaled


def evaluate(logits: Floats, truth: Codes, labels: list[str], *, temperature: float) -> Report:
    """Judges logits (n, len(labels)) against the true codes (n,)."""
    raw, calibrated = softmax(logits), softmax(logits, temperature)
    predicted = logits.argmax(axis=1).astype(np.int64)
    matrix = confusion(truth, predicted, len(labels))
    per_class = label_metrics(matrix, labels)
    right = int(np.trace(matrix))
    low, high = wilson(right, len(truth))
    support = matrix.sum(axis=1)
    seen = [entry["f1"] or 0.0 for entry in per_class if entry["support"] or entry["predicted"]]
    metrics = Metrics(
        rows=len(truth),
        accuracy=right / len(truth),
        accuracy_low=low,
        accuracy_high=high,
        macro_f1=float(np.mean(seen)),
        log_loss=log_loss(calibrated, truth),
        log_loss_uncalibrated=log_loss(raw, truth),
        ece=calibration_error(calibrated, truth),
        ece_uncalibrated=calibration_error(raw, truth),
        majority_baseline=float(support.max() / support.sum()),
        majority_label=labels[int(support.argmax())],
        random_baseline=float(((support / support.sum()) ** 2).sum()),
    )
    return Report(metrics, per_class, matrix.tolist(), reliability(calibrated, truth))


def wilson(right: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share, also near 0 and 1 and for few rows."""
    share, square = right / total, Z**2
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = Z * np.sqrt(share * (1 - share) / total + square / (4 * total**2)) / (1 + square / total)
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def log_loss(probabilities: Floats, truth: Codes) -> float:
    mine = probabilities[np.arange(len(truth)), truth].astype(np.float64)
    return max(0.0, float(-np.log(np.maximum(mine, 1e-12)).mean()))  # of certain ones not -0.0


def reliability(probabilities: Floats, truth: Codes, *, bins: int = BINS) -> list[Bin]:
    """Predictions by confidence, in `bins` equal steps from 0 to 1; empty steps are left out."""
    right = probabilities.argmax(axis=1) == truth
    return bins_of(probabilities.max(axis=1), right, bins=bins)


def bins_of(sure: Floats, right: NDArray[np.bool_], *, bins: int = BINS) -> list[Bin]:
    """Like `reliability`, from the confidence of each answer and whether it was right: (n,)."""
    confidence = sure.astype(np.float64)
    step = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    found: list[Bin] = []
    for number in range(bins):
        inside = step == number
        if inside.any():
            found.append(
                Bin(
                    confidence=float(confidence[inside].mean()),
                    accuracy=float(right[inside].mean()),
                    count=int(inside.sum()),
                )
            )
    return found


def calibration_error(probabilities: Floats, truth: Codes) -> float:
    """Expected calibration error: how far confidence is from being right, on average."""
    return calibration_error_of(probabilities.max(axis=1), probabilities.argmax(axis=1) == truth)


def calibration_error_of(sure: Floats, right: NDArray[np.bool_]) -> float:
    return sum(
        abs(entry["confidence"] - entry["accuracy"]) * entry["count"]
        for entry in bins_of(sure, right)
    ) / len(right)


def confusion(truth: Codes, predicted: Codes, count: int) -> NDArray[np.int64]:
    """(count, count): true label down, predicted label across."""
    flat = np.bincount(truth * count + predicted, minlength=count * count)
    return flat.reshape(count, count).astype(np.int64)


def label_metrics(matrix: NDArray[np.int64], labels: list[str]) -> list[LabelMetrics]:
    """Per label; None where nothing was there to measure."""
    right, support, predicted = np.diag(matrix), matrix.sum(axis=1), matrix.sum(axis=0)
    found: list[LabelMetrics] = []
    for place, label in enumerate(labels):
        total = int(support[place] + predicted[place])
        found.append(
            LabelMetrics(
                label=label,
                precision=_share(right[place], predicted[place]),
                recall=_share(right[place], support[place]),
                f1=_share(2 * right[place], total),
                support=int(support[place]),
                predicted=int(predicted[place]),
            )
        )
    return found


def most_confused(
    truth: Codes, predicted: Codes, labels: list[str], *, limit: int = 12, rows: int = 3
) -> list[Confused]:
    """The pairs of true and predicted label with the most mistakes, with some of the rows."""
    wrong = np.flatnonzero(truth != predicted)
    pairs, counts = np.unique(truth[wrong] * len(labels) + predicted[wrong], return_counts=True)
    support = np.bincount(truth, minlength=len(labels))
    found: list[Confused] = []
    for place in np.argsort(-counts, kind="stable")[:limit]:
        mine, theirs = divmod(int(pairs[place]), len(labels))
        of_pair = wrong[(truth[wrong] == mine) & (predicted[wrong] == theirs)]
        found.append(
            Confused(
                label=labels[mine],
                predicted=labels[theirs],
                count=int(counts[place]),
                support=int(support[mine]),
                rows=of_pair[:rows].tolist(),
            )
        )
    return found


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None
