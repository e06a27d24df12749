"""Two classifiers on the same rows: is the difference more than luck? Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.evaluation.row_results import PredictedRows

Z = 1.959964  # 95 %


@dataclass(frozen=True, slots=True)
class RunPredictions:
    """Predictions of one run on its test rows, with the labels of its codes."""

    rows: PredictedRows
    labels: Sequence[str]


@dataclass(frozen=True, slots=True)
class SharedTestRows:
    """The test rows that two classifiers were both judged on; all lists are in the same order."""

    at_new: NDArray[np.int64]
    """Their places among the rows of the new one."""
    truth: list[str]
    """A row may have been relabelled in between: what counts is the label it has now."""
    old_predicted: list[str]
    new_predicted: list[str]
    relabelled: int

    def __len__(self) -> int:
        return len(self.truth)

    @property
    def old_correct(self) -> NDArray[np.bool_]:
        return _equal(self.old_predicted, self.truth)

    @property
    def new_correct(self) -> NDArray[np.bool_]:
        return _equal(self.new_predicted, self.truth)


def shared_test_rows(old: RunPredictions, new: RunPredictions) -> SharedTestRows:
    """The rows with the same text. Labels are compared by name: their codes may differ."""
    _, at_old, at_new = np.intersect1d(old.rows.key, new.rows.key, return_indices=True)
    truth = _names(new, new.rows.truth[at_new])
    before = _names(old, old.rows.truth[at_old])
    return SharedTestRows(
        at_new=at_new,
        truth=truth,
        old_predicted=_names(old, old.rows.predicted[at_old]),
        new_predicted=_names(new, new.rows.predicted[at_new]),
        relabelled=sum(was != now for was, now in zip(before, truth, strict=True)),
    )


def _names(run: RunPredictions, codes: NDArray[np.int32]) -> list[str]:
    return [run.labels[code] for code in codes.tolist()]


def _equal(said: Sequence[str], truth: Sequence[str]) -> NDArray[np.bool_]:
    pairs = zip(said, truth, strict=True)
    return np.asarray([one == other for one, other in pairs], dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class PairedResult:
    """Scores of two classifiers on the same rows."""

    both: int
    only_old: int
    only_new: int
    neither: int
    p_value: float
    """McNemar's test, exact (McNemar 1947): so large a difference, or a larger one, by luck."""
    low: float
    high: float
    """The 95 % interval of the difference in accuracy, new minus old (Agresti and Min 2005)."""

    @property
    def rows(self) -> int:
        return self.both + self.only_old + self.only_new + self.neither

    @property
    def old_accuracy(self) -> float:
        return (self.both + self.only_old) / self.rows

    @property
    def new_accuracy(self) -> float:
        return (self.both + self.only_new) / self.rows

    @property
    def difference(self) -> float:
        return (self.only_new - self.only_old) / self.rows

    @property
    def is_significant(self) -> bool:
        return self.p_value < 0.05


def compare_paired(old_correct: NDArray[np.bool_], new_correct: NDArray[np.bool_]) -> PairedResult:
    """Args:
    old_correct, new_correct: (n,), of the same rows in the same order, n at least 1.
    """
    both = int((old_correct & new_correct).sum())
    only_old = int((old_correct & ~new_correct).sum())
    only_new = int((~old_correct & new_correct).sum())
    neither = len(old_correct) - both - only_old - only_new
    low, high = _interval(only_old, only_new, len(old_correct))
    return PairedResult(
        both, only_old, only_new, neither, mcnemar_p_value(only_old, only_new), low, high
    )


def mcnemar_p_value(only_old: int, only_new: int) -> float:
    """Two-sided exact p: the rows on which one alone is right would split evenly by luck."""
    total, fewer = only_old + only_new, min(only_old, only_new)
    if total == 0:
        return 1.0
    logs = [
        math.lgamma(total + 1)
        - math.lgamma(count + 1)
        - math.lgamma(total - count + 1)
        - total * math.log(2)
        for count in range(fewer + 1)
    ]
    largest = max(logs)
    tail = math.exp(largest) * sum(math.exp(value - largest) for value in logs)
    return min(1.0, 2 * tail)


def format_p_value(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def _interval(only_old: int, only_new: int, rows: int) -> tuple[float, float]:
    """Wald's interval with half a row added to each of the four cells: also fit for few rows."""
    old, new, total = only_old + 0.5, only_new + 0.5, rows + 2
    middle = (new - old) / total
    half = Z * math.sqrt(max(0.0, (new + old) - (new - old) ** 2 / total)) / total
    return max(-1.0, middle - half), min(1.0, middle + half)
