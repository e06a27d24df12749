"""Training: the regularisation strength chosen by cross-validation, calibrated probabilities.

- The strength C is chosen among five by out-of-fold log-loss. scikit-learn's default of 1 loses
  two points of accuracy on unit vectors and is far from sure enough of itself. Of those that do
  not differ by more than a standard error the strongest regularisation wins (Breiman et al. 1984).
- One temperature, fitted on the out-of-fold logits, makes the probabilities mean what they say
  (see `calibration`). Platt and isotonic scaling per class do not, with many classes.
- Weighted labels decide, but do not lie: what the weights did to the prior is taken out of the
  logits again before they become probabilities.
- Few rows are dealt into folds several times: one deal of twenty rows is a matter of luck.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.evaluation.calibration import ENOUGH_MISTAKES, Calibration, calibrate
from apps.classifiers.training.estimator import (
    DEFAULT_OPTIONS,
    Floats,
    Model,
    TrainerOptions,
    fit_and_predict,
    fit_weights,
    new_estimator,
    scaled_vectors,
)
from apps.classifiers.training.folds import Codes, deal_folds
from apps.embeddings.services import empty_array

if TYPE_CHECKING:
    pass


STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0)
FOLDS = 5
REPEATED_BELOW = 200  # rows
REPEATS = 5
MIN_GAIN = 0.02  # of the loss


@dataclass(frozen=True, slots=True)
class StrengthResult:
    """Cross-validated scores of one value of C."""

    C: float
    temperature: float
    log_loss: float
    """Against Platt's targets, so never 0: see `calibration`."""
    accuracy: float


@dataclass(frozen=True, slots=True)
class Fit:
    model: Model
    C: float
    path: tuple[StrengthResult, ...]
    out_of_fold: Floats  # (rows, labels) logits, each by models that had not seen the row
    converged: bool
    mistakes: int
    """Rows that come out wrong in `out_of_fold`."""
    temperature_at_bound: bool = False

    @property
    def at_edge(self) -> bool:
        """The first or last C tried was clearly the best: a better one may lie beyond."""
        for edge, inner in ((self.path[0], self.path[1]), (self.path[-1], self.path[-2])):
            if edge.C == self.C and edge.log_loss < (1 - MIN_GAIN) * inner.log_loss:
                return True
        return False

    @property
    def calibrated(self) -> bool:
        """There were mistakes enough to learn from how sure it may be; else it is only careful."""
        return self.mistakes >= ENOUGH_MISTAKES and not self.temperature_at_bound


@dataclass(frozen=True, slots=True)
class _Tried:
    strength: StrengthResult
    calibration: Calibration
    losses: NDArray[np.float64]  # (rows,)
    logits: Floats  # (deals * rows, labels)


def fit(
    vectors: Floats,
    labels: Codes,
    groups: Codes,
    *,
    options: TrainerOptions = DEFAULT_OPTIONS,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Fit:
    """Fit the model that predicts best on rows it has not seen.

    Args:
        vectors: (n, d), of unit length, writable: scaled in place meanwhile and given back as
            they were.
        labels: (n,), each value from 0 to the number of labels - 1, each at least in two groups.
        groups: (n,), the same for rows that must stay on one side of a split.
        report: called with (done, total) fits; what it raises ends the work.
    """
    rows, count = len(labels), int(labels.max()) + 1
    deals = [
        deal_folds(labels, groups, folds=FOLDS, seed=options.seed + number)
        for number in range(REPEATS if rows < REPEATED_BELOW else 1)
    ]
    validation = _CrossValidation(vectors, labels, deals, options)
    total = len(STRENGTHS) * len(validation.held_out) + 1
    done = itertools.count(1)
    report(0, total)
    path: list[StrengthResult] = []
    chosen: _Tried | None = None
    with scaled_vectors(vectors):
        # C outside, folds inside: each fold starts from its own weights at the last C, and only
        # one set of out-of-fold logits is held besides the best.
        for C in STRENGTHS:
            tried = validation.try_strength(C, lambda: report(next(done), total))
            path.append(tried.strength)
            if chosen is None or _clearly_less(tried.losses, chosen.losses):
                chosen = tried
        assert chosen is not None
        weights, bias, converged = fit_weights(vectors, labels, count, chosen.strength.C, options)
    report(total, total)
    return _build_fit(chosen, tuple(path), labels, validation.prior, weights, bias, converged)


def _build_fit(
    chosen: _Tried,
    path: tuple[StrengthResult, ...],
    labels: Codes,
    prior: Floats,
    weights: Floats,
    bias: Floats,
    converged: bool,
) -> Fit:
    rows, count = len(labels), int(labels.max()) + 1
    out_of_fold = chosen.logits
    if len(out_of_fold) > rows:  # several deals
        out_of_fold = out_of_fold.reshape(-1, rows, count).mean(axis=0)
    mistakes = int((out_of_fold.argmax(axis=1) != labels).sum())
    temperature = chosen.strength.temperature
    shift = np.float32(temperature) * prior
    out_of_fold += shift
    return Fit(
        Model(weights, bias + shift, temperature, -shift),
        chosen.strength.C,
        path,
        out_of_fold,
        converged,
        mistakes,
        chosen.calibration.at_bound,
    )


class _CrossValidation:
    """Fits each fold of each deal with one strength after the other."""

    def __init__(
        self, vectors: Floats, labels: Codes, deals: list[Codes], options: TrainerOptions
    ) -> None:
        self._vectors, self._labels, self._deals = vectors, labels, len(deals)
        self.prior = _prior(labels, options)
        self.held_out = [
            (at, folds == fold) for at, folds in enumerate(deals) for fold in np.unique(folds)
        ]
        self._fitters = [new_estimator(options) for _ in self.held_out]

    def try_strength(self, C: float, report: Callable[[], None]) -> _Tried:
        """Predict each row by a model that has not seen it; `report` is called after each fit."""
        labels, rows = self._labels, len(self._labels)
        logits = empty_array((self._deals * rows, int(labels.max()) + 1))
        for (at, out), fitter in zip(self.held_out, self._fitters, strict=True):
            mine = logits[at * rows : (at + 1) * rows]
            fit_and_predict(fitter, C, self._vectors, labels, out, mine)
            report()
        truth = np.tile(labels, self._deals)
        found = calibrate(logits, truth, counts=np.bincount(labels), shift=self.prior)
        accuracy = float((logits.argmax(axis=1) == truth).mean())
        strength = StrengthResult(C, found.temperature, found.loss, accuracy)
        losses = found.losses.reshape(self._deals, rows).mean(axis=0)
        return _Tried(strength, found, losses, logits)


def naive_accuracy(
    vectors: Floats,
    labels: Codes,
    *,
    C: float,
    options: TrainerOptions = DEFAULT_OPTIONS,
    check: Callable[[], None] = lambda: None,
) -> float:
    """Cross-validated accuracy where copies of a text may be on both sides: what careless
    splitting would have shown. `check` may raise between fits."""
    count = int(labels.max()) + 1
    folds = deal_folds(labels, np.arange(len(labels)), folds=FOLDS, seed=options.seed)
    logits = empty_array((len(labels), count))
    with scaled_vectors(vectors):
        for fold in np.unique(folds):
            check()
            fit_and_predict(new_estimator(options), C, vectors, labels, folds == fold, logits)
    return float((logits.argmax(axis=1) == labels).mean())


def _clearly_less(losses: NDArray[np.float64], than: NDArray[np.float64]) -> bool:
    """Less by more than a standard error of the difference, row by row, and by enough to matter.
    Both are (rows,)."""
    gain = than - losses
    return bool(gain.mean() > max(gain.std() / np.sqrt(len(gain)), MIN_GAIN * than.mean()))


def _prior(labels: Codes, options: TrainerOptions) -> Floats:
    """Log prior that weighing hides from the logits: (labels,), 0 if labels are not weighed.

    A label weighed w times as much comes out w times as likely as it is (King and Zeng 2001,
    "Logistic Regression in Rare Events Data": prior correction).
    """
    counts = np.bincount(labels).astype(np.float32)
    if not options.balanced:
        return np.zeros(len(counts), dtype=np.float32)
    prior: Floats = np.log(counts / counts.mean(), dtype=np.float32)
    return prior
