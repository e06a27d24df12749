"""scikit-learn's logistic regression on unit vectors. Arrays in, arrays out.

- Unit vectors times 8 with C / 64 are the same model, but lbfgs's stopping rule then means what it
  says: half the time at a lower loss. A power of two, so that scaling in place and back is exact
  and a hundred thousand vectors are not copied for it.
- One BLAS thread: with two, a model server on the other core makes the fit ten times slower.

scikit-learn is imported where it is used: it takes seconds that the web process, which needs only
a limit or a type of this module, would pay at each start.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from apps.classifiers.training.folds import Codes
from apps.embeddings.services import take_rows

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression  # noqa: TID251 - the room it is banned to

Floats = NDArray[np.float32]

SCALE = np.float32(8)
LIBRARY_VERSION = version("scikit-learn")
MAX_ITERATIONS = 1000
MIN_TEXTS = 2  # of a label: each is tested once by a model that saw the other


@dataclass(frozen=True, slots=True)
class TrainerOptions:
    seed: int = 0
    balanced: bool = False
    """Weigh labels so that rare ones count as much as common ones."""


DEFAULT_OPTIONS = TrainerOptions()


@dataclass(frozen=True, slots=True)
class Model:
    """logits = vectors @ weights.T + bias, for unit vectors; divided by the temperature."""

    weights: Floats  # (labels, dimensions)
    bias: Floats  # (labels,)
    temperature: float
    favour: Floats  # (labels,)
    """Added to the logits before the largest is chosen, not for probabilities; 0 where labels are
    not weighed."""

    def logits(self, vectors: Floats) -> Floats:
        return vectors @ self.weights.T + self.bias

    def choose(self, logits: Floats) -> Codes:
        """The label of each row: (n,)."""
        return choose(logits, self.favour)


def choose(logits: Floats, favour: Floats) -> Codes:
    """The label with the largest logit once some are favoured: (n,)."""
    return np.asarray((logits + favour).argmax(axis=1), dtype=np.int64)


def fit_once(
    vectors: Floats,
    labels: Codes,
    count: int,
    *,
    C: float,
    options: TrainerOptions = DEFAULT_OPTIONS,
    scale: np.float32 = SCALE,
) -> Model:
    """One fit at a known C, uncalibrated: used for the last fit and for learning curves.

    Args:
        scale: 1 fits as scikit-learn does by itself, whose rule then stops earlier: only for
            repeating what others have measured.
    """
    with scaled_vectors(vectors, scale):
        weights, bias, _ = fit_weights(vectors, labels, count, C, options, scale)
    return Model(weights, bias, 1.0, np.zeros(count, dtype=np.float32))


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


@contextmanager
def scaled_vectors(vectors: Floats, scale: np.float32 = SCALE) -> Iterator[None]:
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


def fit_weights(
    scaled: Floats,
    labels: Codes,
    count: int,
    C: float,
    options: TrainerOptions,
    scale: np.float32 = SCALE,
) -> tuple[Floats, Floats, bool]:
    """Weights and bias for unit vectors, and whether it converged."""
    fitter = new_estimator(options).set_params(C=_scaled_down(C, scale))
    converged = _fit_quietly(fitter, scaled, labels)
    weights, bias = _weights(fitter, count)
    return weights * scale, bias, converged


def fit_and_predict(
    fitter: "LogisticRegression",
    C: float,
    scaled: Floats,
    labels: Codes,
    held_out: NDArray[np.bool_],
    logits: Floats,
) -> None:
    """Fits on the rest and writes the logits of the rows held out."""
    rest = ~held_out
    _fit_quietly(fitter.set_params(C=_scaled_down(C)), take_rows(scaled, rest), labels[rest])
    weights, bias = _weights(fitter, logits.shape[1])
    logits[held_out] = take_rows(scaled, held_out) @ weights.T + bias


def new_estimator(options: TrainerOptions) -> "LogisticRegression":
    from sklearn.linear_model import LogisticRegression  # noqa: TID251

    return LogisticRegression(
        max_iter=MAX_ITERATIONS,
        warm_start=True,
        class_weight="balanced" if options.balanced else None,
    )


def _scaled_down(C: float, scale: np.float32 = SCALE) -> float:
    return C / float(scale) ** 2


def _fit_quietly(fitter: "LogisticRegression", vectors: Floats, labels: Codes) -> bool:
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
