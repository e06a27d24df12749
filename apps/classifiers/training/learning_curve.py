"""Accuracy by the number of training rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.evaluation.statistics import mcnemar
from apps.classifiers.run_results import CurvePoint
from apps.classifiers.training.estimator import TrainerOptions, fit_once
from apps.classifiers.training.folds import Codes
from apps.classifiers.training.rows import RowVectors
from apps.classifiers.training.trainer import Fit
from apps.core.statistics.confidence_interval import wilson_interval
from apps.embeddings.services import take_rows

SHARES = (0.1, 0.2, 0.4, 0.7, 1.0)


def learning_curve_subsets(
    labels: Codes, shares: Sequence[float], *, seed: int
) -> Iterator[NDArray[np.bool_]]:
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


def learning_curve(
    vectors: RowVectors,
    codes: Codes,
    truth: Codes,
    labels: int,
    fit: Fit,
    options: TrainerOptions,
    *,
    report: Callable[[int], None] = lambda step: None,
) -> list[CurvePoint]:
    """Accuracy on the test rows after training on growing parts of the training rows.

    Args:
        codes: labels of the training rows: (n,).
        truth: labels of the test rows: (m,).
        report: called with the number of points; what it raises ends the work.
    """
    points: list[CurvePoint] = []
    before: NDArray[np.bool_] | None = None
    subsets = learning_curve_subsets(codes, SHARES, seed=options.seed)
    for step, subset in enumerate(subsets, start=1):
        correct = _correct_after(subset, vectors, codes, truth, labels, fit, options)
        points.append(_point(int(subset.sum()), correct, before))
        before = correct
        report(step)
    return points


def _correct_after(
    part: NDArray[np.bool_],
    vectors: RowVectors,
    codes: Codes,
    truth: Codes,
    labels: int,
    fit: Fit,
    options: TrainerOptions,
) -> NDArray[np.bool_]:
    """Mark the test rows that are right after training on a part of the rows; the last is all."""
    model = fit.model
    if not part.all():
        given = take_rows(vectors.train, part)
        model = fit_once(given, codes[part], labels, C=fit.C, options=options)
    correct: NDArray[np.bool_] = model.choose(model.logits(vectors.test)) == truth
    return correct


def _point(rows: int, right: NDArray[np.bool_], before: NDArray[np.bool_] | None) -> CurvePoint:
    """Return one point of the learning curve, with the significance of the step to it."""
    hits = int(right.sum())
    low, high = wilson_interval(hits, len(right))
    point = CurvePoint(rows, hits / len(right), low, high)
    if before is None:
        return point
    step = mcnemar.compare_paired(before, right)
    return replace(point, p_value=step.p_value, gain_low=step.low, gain_high=step.high)
