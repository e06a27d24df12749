"""Logistic regression on embeddings with calibrated probabilities.

The only module that imports scikit-learn; arrays in, arrays out. The recipe and why:

- Unit vectors times 10 with C / 100 are the same model, but lbfgs's stopping rule then means what
  it says: half the time at a lower loss.
- The strength C is chosen among five by out-of-fold log-loss. scikit-learn's default of 1 loses
  two points of accuracy on unit vectors and is far from sure enough of itself.
- One temperature, fitted on the out-of-fold logits, makes the probabilities mean what they say.
  Platt and isotonic scaling per class do not, with many classes.
- One BLAS thread: with two, a model server on the other core makes the fit ten times slower.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import sklearn  # noqa: TID251 - the room it is banned to
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning  # noqa: TID251 - the room it is banned to
from sklearn.linear_model import LogisticRegression  # noqa: TID251
from threadpoolctl import threadpool_limits

from apps.classifiers.evaluation import log_loss, softmax
from apps.classifiers.splits import Codes, deal_folds

Floats = NDArray[np.float32]

STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0)
SCALE = np.float32(10)
LIBRARY_VERSION: str = sklearn.__version__
MAX_ITERATIONS = 1000
FOLDS = 5
MIN_TEXTS = 2  # of a label: each is judged once by a model that saw the other


@dataclass(frozen=True, slots=True)
class Options:
    seed: int = 0
    balanced: bool = False
    """Weigh labels so that rare ones count as much as common ones."""


@dataclass(frozen=True, slots=True)
class Model:
    """logits = vectors @ weights.T + bias, for unit vectors; divided by the temperature."""

    weights: Floats  # (labels, dimensions)
    bias: Floats  # (labels,)
    temperature: float

    def logits(self, vectors: Floats) -> Floats:
        return vectors @ self.weights.T + self.bias


@dataclass(frozen=True, slots=True)
class Strength:
    """How one value of C did on the rows it had not seen."""

    C: float
    temperature: float
    log_loss: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Fit:
    model: Model
    C: float
    path: tuple[Strength, ...]
    out_of_fold: Floats  # (rows, labels) logits, each by a model that had not seen the row
    converged: bool

    @property
    def at_edge(self) -> bool:
        """The best C is the first or last tried: a better one may lie beyond."""
        return self.C in {STRENGTHS[0], STRENGTHS[-1]}


def fit(
    vectors: Floats,
    labels: Codes,
    groups: Codes,
    *,
    options: Options = Options(),
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Fit:
    """The model that predicts best, by what it says of rows it has not seen.

    Args:
        vectors: (n, d), of unit length.
        labels: (n,), each value from 0 to the number of labels - 1, each at least in two groups.
        groups: (n,), the same for rows that must stay on one side of a split.
        report: called with (done, total) fits; what it raises ends the work.
    """
    scaled = vectors * SCALE
    count = int(labels.max()) + 1
    folds = deal_folds(labels, groups, folds=FOLDS, seed=options.seed)
    used = [fold for fold in range(FOLDS) if (folds == fold).any()]
    total = len(STRENGTHS) * len(used) + 1
    done = 0
    report(done, total)
    fitters = [_fitter(options) for _ in used]
    path: list[Strength] = []
    best: tuple[Strength, Floats] | None = None
    converged = True
    with threadpool_limits(limits=1, user_api="blas"):
        # C outside, folds inside: each fold starts from its own weights at the last C, and only
        # one set of out-of-fold logits is held besides the best.
        for C in STRENGTHS:
            logits = np.empty((len(labels), count), dtype=np.float32)
            for fold, fitter in zip(used, fitters, strict=True):
                rest = folds != fold
                _run(fitter.set_params(C=_scaled_down(C)), scaled[rest], labels[rest])
                weights, bias = _weights(fitter, count)
                logits[~rest] = vectors[~rest] @ weights.T + bias
                done += 1
                report(done, total)
            temperature = fit_temperature(logits, labels)
            strength = Strength(
                C,
                temperature,
                log_loss(softmax(logits, temperature), labels),
                float((logits.argmax(axis=1) == labels).mean()),
            )
            path.append(strength)
            if best is None or strength.log_loss < best[0].log_loss:
                best = strength, logits
        assert best is not None
        chosen, out_of_fold = best
        final = _fitter(options).set_params(C=_scaled_down(chosen.C))
        converged = _run(final, scaled, labels)
        weights, bias = _weights(final, count)
    report(total, total)
    return Fit(
        Model(weights, bias, chosen.temperature), chosen.C, tuple(path), out_of_fold, converged
    )


def fit_temperature(logits: Floats, labels: Codes) -> float:
    """The T that makes softmax(logits / T) likeliest: the root of a monotone function of 1 / T."""
    mine = logits[np.arange(len(labels)), labels]
    low, high = np.log(0.02), np.log(50.0)
    for _ in range(24):  # to a millionth
        middle = (low + high) / 2
        expected = (softmax(logits, 1 / np.exp(middle)) * logits).sum(axis=1)
        if float((expected - mine).mean()) > 0:  # too sure of itself
            high = middle
        else:
            low = middle
    return float(1 / np.exp((low + high) / 2))


def _fitter(options: Options) -> LogisticRegression:
    return LogisticRegression(
        max_iter=MAX_ITERATIONS,
        warm_start=True,
        class_weight="balanced" if options.balanced else None,
    )


def _scaled_down(C: float) -> float:
    return C / float(SCALE) ** 2


def _run(fitter: LogisticRegression, vectors: Floats, labels: Codes) -> bool:
    """Fits, and says whether it converged. A warning on a log is nobody's reading."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitter.fit(vectors, labels)
    return int(np.max(fitter.n_iter_)) < MAX_ITERATIONS


def _weights(fitter: LogisticRegression, count: int) -> tuple[Floats, Floats]:
    """Weights for unit vectors, one row per label.

    With two labels scikit-learn keeps one row: half of it against, half for, is the same model.
    """
    weights = fitter.coef_.astype(np.float32) * SCALE
    bias = fitter.intercept_.astype(np.float32)
    if len(fitter.classes_) == 2:
        weights, bias = np.vstack([-weights / 2, weights / 2]), np.hstack([-bias / 2, bias / 2])
    assert len(weights) == count, "a fold without one of the labels"
    return weights, bias
