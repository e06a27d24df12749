"""What a classifier is worth, from its probabilities on rows it never saw. Pure numpy."""

from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Codes = NDArray[np.int64]

BINS = 15
Z = 1.959964  # 95 %
DRAWS = 200


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


class ConfusedPair(TypedDict):
    """Rows of one label that were taken for another."""

    label: str
    predicted: str
    count: int
    support: int
    rows: list[int]


class ReliabilityBin(TypedDict):
    """Predictions of like confidence: how often they were right."""

    confidence: float
    accuracy: float
    count: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ClassificationReport:
    metrics: Metrics
    per_class: list[LabelMetrics]
    matrix: list[list[int]]
    """Rows: the true label; columns: the predicted one."""
    reliability: list[ReliabilityBin]


def softmax(logits: Floats, temperature: float = 1.0) -> Floats:
    """Probabilities per row: (n, labels)."""
    scaled = logits / np.float32(temperature)
    scaled -= scaled.max(axis=1, keepdims=True)
    np.exp(scaled, out=scaled)
    scaled /= scaled.sum(axis=1, keepdims=True)
    return scaled


def classification_report(
    logits: Floats,
    truth: Codes,
    labels: list[str],
    *,
    temperature: float,
    predicted: Codes | None = None,
    unseen: int = 0,
) -> ClassificationReport:
    """Judges logits (n, len(labels)) against the true codes (n,).

    Args:
        predicted: (n,) the labels it gives, where these are not those with the largest logit.
        unseen: how many more rows have labels it does not know.
    """
    raw, calibrated = softmax(logits), softmax(logits, temperature)
    said = logits.argmax(axis=1).astype(np.int64) if predicted is None else predicted
    rows = np.arange(len(truth))
    sure, was_right = calibrated[rows, said], said == truth
    matrix = confusion(truth, said, len(labels))
    per_class = label_metrics(matrix, labels)
    right = int(np.trace(matrix))
    low, high = wilson_interval(right, len(truth))
    support = matrix.sum(axis=1)
    seen = [entry["f1"] or 0.0 for entry in per_class if entry["support"] or entry["predicted"]]
    expected, expected_high = chance_calibration_error(sure)
    metrics = Metrics(
        rows=len(truth),
        accuracy=right / len(truth),
        accuracy_low=low,
        accuracy_high=high,
        macro_f1=float(np.mean(seen)),
        log_loss=log_loss(calibrated, truth),
        log_loss_uncalibrated=log_loss(raw, truth),
        ece=expected_calibration_error(sure, was_right),
        ece_uncalibrated=expected_calibration_error(raw[rows, said], was_right),
        ece_expected=expected,
        ece_expected_high=expected_high,
        ece_by_label=classwise_calibration_error(calibrated, truth),
        brier=brier(calibrated, truth),
        unseen_rows=unseen,
        accuracy_with_unseen=right / (len(truth) + unseen),
        majority_baseline=float(support.max() / support.sum()),
        majority_label=labels[int(support.argmax())],
        random_baseline=float(((support / support.sum()) ** 2).sum()),
    )
    return ClassificationReport(
        metrics, per_class, matrix.tolist(), reliability_bins(sure, was_right)
    )


def wilson_interval(right: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share, also near 0 and 1 and for few rows."""
    share, square = right / total, Z**2
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = Z * np.sqrt(share * (1 - share) / total + square / (4 * total**2)) / (1 + square / total)
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def log_loss(probabilities: Floats, truth: Codes) -> float:
    mine = probabilities[np.arange(len(truth)), truth].astype(np.float64)
    return max(0.0, float(-np.log(np.maximum(mine, 1e-12)).mean()))  # of certain ones not -0.0


def brier(probabilities: Floats, truth: Codes) -> float:
    """Mean squared error of the probabilities, over all labels: 0 to 2 (Brier 1950)."""
    squares = np.square(probabilities, dtype=np.float64).sum(axis=1)
    mine = probabilities[np.arange(len(truth)), truth].astype(np.float64)
    return float((squares - 2 * mine + 1).mean())


def reliability_bins(
    sure: Floats, right: NDArray[np.bool_], *, bins: int = BINS
) -> list[ReliabilityBin]:
    """Answers by confidence, in `bins` equal steps from 0 to 1; empty steps are left out.

    Args:
        sure: (n,) the confidence of each answer.
        right: (n,)
    """
    confidence = sure.astype(np.float64)
    step = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    found: list[ReliabilityBin] = []
    for number in range(bins):
        inside = step == number
        if inside.any():
            count, hits = int(inside.sum()), int(right[inside].sum())
            low, high = wilson_interval(hits, count)
            found.append(
                ReliabilityBin(
                    confidence=float(confidence[inside].mean()),
                    accuracy=hits / count,
                    count=count,
                    low=low,
                    high=high,
                )
            )
    return found


def calibration_error(probabilities: Floats, truth: Codes) -> float:
    """Expected calibration error: how far confidence is from being right, on average."""
    return expected_calibration_error(
        probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    )


def expected_calibration_error(sure: Floats, right: NDArray[np.bool_]) -> float:
    """From the confidence of each answer and whether it was right: (n,)."""
    return _mean_gap(sure, right.astype(np.float64) - sure)


def classwise_calibration_error(probabilities: Floats, truth: Codes) -> float:
    """The calibration error of each label's own probability, mean over labels: what averaging over
    the answers alone hides (Kull et al. 2019, "Beyond temperature scaling", classwise-ECE)."""
    errors = [
        expected_calibration_error(probabilities[:, label], truth == label)
        for label in range(probabilities.shape[1])
    ]
    return float(np.mean(errors))


def chance_calibration_error(sure: Floats, *, seed: int = 0) -> tuple[float, float]:
    """What chance alone shows: mean and 95th percentile of the calibration error of a model that is
    right exactly as often as it says. Never 0, and large on few rows (Vaicenavicius et al. 2019,
    consistency resampling).

    Args:
        sure: (n,) the confidence of each answer.
    """
    random = np.random.default_rng(seed)
    keep = sure.astype(np.float64)
    found = [_mean_gap(sure, (random.random(len(keep)) < keep) - keep) for _ in range(DRAWS)]
    return float(np.mean(found)), float(np.quantile(found, 0.95))


def _mean_gap(sure: Floats, gaps: NDArray[np.float64]) -> float:
    """Right or not (0, 1) minus confidence, averaged within bins and then over rows."""
    step = np.minimum((sure.astype(np.float64) * BINS).astype(np.int64), BINS - 1)
    return float(np.abs(np.bincount(step, weights=gaps, minlength=BINS)).sum() / len(sure))


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


def most_confused_pairs(
    truth: Codes, predicted: Codes, labels: list[str], *, limit: int = 12, rows: int = 3
) -> list[ConfusedPair]:
    """The pairs of true and predicted label with the most mistakes, with some of the rows."""
    wrong = np.flatnonzero(truth != predicted)
    pairs, counts = np.unique(truth[wrong] * len(labels) + predicted[wrong], return_counts=True)
    support = np.bincount(truth, minlength=len(labels))
    found: list[ConfusedPair] = []
    for place in np.argsort(-counts, kind="stable")[:limit]:
        mine, theirs = divmod(int(pairs[place]), len(labels))
        of_pair = wrong[(truth[wrong] == mine) & (predicted[wrong] == theirs)]
        found.append(
            ConfusedPair(
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
