"""Logistic regression on embeddings with calibrated probabilities.

The only module that imports scikit-learn; arrays in, arrays out. The recipe and why:

- Unit vectors times 8 with C / 64 are the same model, but lbfgs's stopping rule then means what it
  says: half the time at a lower loss. A power of two, so that scaling in place and back is exact
  and a hundred thousand vectors are not copied for it.
- The strength C is chosen among five by out-of-fold log-loss. scikit-learn's default of 1 loses
  two points of accuracy on unit vectors and is far from sure enough of itself.
- One temperature, fitted on the out-of-fold logits, makes the probabilities mean what they say.
  Platt and isotonic scaling per class do not, with many classes.
- One BLAS thread: with two, a model server on the other core makes the fit ten times slower.

scikit-learn is imported where it is used: it takes seconds that the web process, which asks this
module for a limit or a type alone, would pay at each start.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from apps.classifiers.evaluation import log_loss, softmax
from apps.classifiers.splits import Codes, deal_folds
from apps.embeddings import arrays

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression  # noqa: TID251 - the room it is banned to

Floats = NDArray[np.float32]

STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0)
SCALE = np.float32(8)
LIBRARY_VERSION = version("scikit-learn")
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
        vectors: (n, d), of unit length, writable: scaled in place meanwhile and given back as
            they were.
        labels: (n,), each value from 0 to the number of labels - 1, each at least in two groups.
        groups: (n,), the same for rows that must stay on one side of a split.
        report: called with (done, total) fits; what it raises ends the work.
    """
    count = int(labels.max()) + 1
    folds = deal_folds(labels, groups, folds=FOLDS, seed=options.seed)
    used = [fold for fold in range(FOLDS) if (folds == fold).any()]
    total = len(STRENGTHS) * len(used) + 1
    done = 0
    report(done, total)
    fitters = [_fitter(options) for _ in used]
    path: list[Strength] = []
    best: tuple[Strength, Floats] | None = None
    with _scaled(vectors):
        # C outside, folds inside: each fold starts from its own weights at the last C, and only
        # one set of out-of-fold logits is held besides the best.
        for C in STRENGTHS:
            logits = arrays.empty((len(labels), count))
            for fold, fitter in zip(used, fitters, strict=True):
                _fit_and_judge(fitter, C, vectors, labels, folds == fold, logits)
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
        weights, bias, converged = _fit(vectors, labels, count, chosen.C, options)
    report(total, total)
    return Fit(
        Model(weights, bias, chosen.temperature), chosen.C, tuple(path), out_of_fold, converged
    )


def fit_once(
    vectors: Floats,
    labels: Codes,
    count: int,
    *,
    C: float,
    options: Options = Options(),
    scale: np.float32 = SCALE,
) -> Model:
    """One fit at a known C, uncalibrated: what `fit` ends with, and what a curve is made of.

    Args:
        scale: 1 fits as scikit-learn does by itself, whose rule then stops earlier: only for
            repeating what others have measured.
    """
    with _scaled(vectors, scale):
        weights, bias, _ = _fit(vectors, labels, count, C, options, scale)
    return Model(weights, bias, 1.0)


def naive_accuracy(
    vectors: Floats,
    labels: Codes,
    *,
    C: float,
    options: Options = Options(),
    check: Callable[[], None] = lambda: None,
) -> float:
    """Cross-validated accuracy where copies of a text may be on both sides: what careless
    splitting would have shown. `check` may raise between fits."""
    count = int(labels.max()) + 1
    folds = deal_folds(labels, np.arange(len(labels)), folds=FOLDS, seed=options.seed)
    logits = arrays.empty((len(labels), count))
    with _scaled(vectors):
        for fold in np.unique(folds):
            check()
            _fit_and_judge(_fitter(options), C, vectors, labels, folds == fold, logits)
    return float((logits.argmax(axis=1) == labels).mean())


def as_estimator(
    weights: Floats, bias: Floats, temperature: float, labels: Sequence[str]
) -> "LogisticRegression":
    """The model as scikit-learn would have fitted it: its `predict_proba` is calibrated."""
    from sklearn.linear_model import LogisticRegression  # noqa: TID251

    estimator = LogisticRegression()
    coefficients = (weights / np.float32(temperature)).astype(np.float32)
    intercepts = (bias / np.float32(temperature)).astype(np.float32)
    if len(labels) == 2:  # scikit-learn keeps the difference only
        coefficients, intercepts = np.diff(coefficients, axis=0), np.diff(intercepts)
    estimator.coef_, estimator.intercept_ = coefficients, intercepts
    estimator.classes_ = np.asarray(labels, dtype=np.str_)
    estimator.n_features_in_ = weights.shape[1]
    return estimator


def growing(labels: Codes, shares: Sequence[float], *, seed: int) -> Iterator[NDArray[np.bool_]]:
    """Ever larger parts of the rows, each with about that share of every label and at least one
    row of it; each holds the one before."""
    rank = np.empty(len(labels))
    order = np.random.default_rng(seed).permutation(len(labels))
    sorted_by_label = order[np.argsort(labels[order], kind="stable")]
    counts = np.bincount(labels)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    rank[sorted_by_label] = np.arange(len(labels)) - starts
    for share in shares:
        yield rank < np.maximum(1, np.round(share * counts[labels]))


@contextmanager
def _scaled(vectors: Floats, scale: np.float32 = SCALE) -> Iterator[None]:
    """The vectors times the scale, in place, while the block lasts; one BLAS thread.

    Exact both ways, as the scale is a power of two. What is read-only or belongs to another array
    is the caller's to copy.
    """
    np.multiply(vectors, scale, out=vectors)
    try:
        with threadpool_limits(limits=1, user_api="blas"):
            yield
    finally:
        np.multiply(vectors, 1 / scale, out=vectors)


def _fit(
    scaled: Floats,
    labels: Codes,
    count: int,
    C: float,
    options: Options,
    scale: np.float32 = SCALE,
) -> tuple[Floats, Floats, bool]:
    """Weights and bias for unit vectors, and whether it converged."""
    fitter = _fitter(options).set_params(C=_scaled_down(C, scale))
    converged = _run(fitter, scaled, labels)
    weights, bias = _weights(fitter, count)
    return weights * scale, bias, converged


def _fit_and_judge(
    fitter: "LogisticRegression",
    C: float,
    scaled: Floats,
    labels: Codes,
    held_out: NDArray[np.bool_],
    logits: Floats,
) -> None:
    """Fits on the rest and writes the logits of the rows held out."""
    rest = ~held_out
    _run(fitter.set_params(C=_scaled_down(C)), arrays.take(scaled, rest), labels[rest])
    weights, bias = _weights(fitter, logits.shape[1])
    logits[held_out] = arrays.take(scaled, held_out) @ weights.T + bias


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


def _fitter(options: Options) -> "LogisticRegression":
    from sklearn.linear_model import LogisticRegression  # noqa: TID251

    return LogisticRegression(
        max_iter=MAX_ITERATIONS,
        warm_start=True,
        class_weight="balanced" if options.balanced else None,
    )


def _scaled_down(C: float, scale: np.float32 = SCALE) -> float:
    return C / float(scale) ** 2


def _run(fitter: "LogisticRegression", vectors: Floats, labels: Codes) -> bool:
    """Fits, and says whether it converged. A warning on a log is nobody's reading."""
    from sklearn.exceptions import ConvergenceWarning  # noqa: TID251

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitter.fit(vectors, labels)
    return int(np.max(fitter.n_iter_)) < MAX_ITERATIONS


def _weights(fitter: "LogisticRegression", count: int) -> tuple[Floats, Floats]:
    """Weights for scaled vectors, one row per label.

    With two labels scikit-learn keeps one row: half of it against, half for, is the same model.
    """
    weights = fitter.coef_.astype(np.float32)
    bias = fitter.intercept_.astype(np.float32)
    if len(fitter.classes_) == 2:
        weights, bias = np.vstack([-weights / 2, weights / 2]), np.hstack([-bias / 2, bias / 2])
    assert len(weights) == count, "a fold without one of the labels"
    return weights, bias
