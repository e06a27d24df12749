"""Measure thresholds on rows whose answer is known. Pure numpy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.evaluation.thresholds.decision import Thresholds

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ThresholdOutcome:
    """Counts of rows that get a label, a refusal or an error."""

    rows: int
    answered: int
    right: int
    unsure: int
    none: int
    out_of_scope: int
    """Out-of-scope rows ..."""
    caught: int
    """... and those of them that get no label."""

    @property
    def coverage(self) -> float | None:
        """Share of in-scope texts that get a label."""
        return self.answered / self.rows if self.rows else None

    @property
    def precision(self) -> float | None:
        """Share of those labels that are right."""
        return self.right / self.answered if self.answered else None

    @property
    def recall(self) -> float | None:
        """Share of out-of-scope texts that get no label."""
        return self.caught / self.out_of_scope if self.out_of_scope else None


def apply_thresholds(
    confidence: Floats,
    score: Floats,
    right: NDArray[np.bool_],
    gates: Thresholds,
    *,
    out_of_scope_confidence: Floats | None = None,
    out_of_scope_score: Floats | None = None,
) -> ThresholdOutcome:
    """The rows behind the gates, and the out-of-scope ones where there are some."""
    none = score < gates.limit
    unsure = ~none & (confidence < gates.unsure)
    answered = ~none & ~unsure
    out_of_scope = caught = 0
    if out_of_scope_confidence is not None and out_of_scope_score is not None:
        out_of_scope = len(out_of_scope_confidence)
        caught = int(
            ((out_of_scope_score < gates.limit) | (out_of_scope_confidence < gates.unsure)).sum()
        )
    return ThresholdOutcome(
        rows=len(confidence),
        answered=int(answered.sum()),
        right=int((answered & right).sum()),
        unsure=int(unsure.sum()),
        none=int(none.sum()),
        out_of_scope=out_of_scope,
        caught=caught,
    )


def auroc(inside: Floats, outside: Floats) -> float:
    """AUROC: how often an in-scope row has the larger score than an out-of-scope one."""
    scores = np.concatenate([inside, outside])
    order = scores.argsort(kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    # Ties share their mean rank.
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.bincount(inverse, weights=ranks) / counts)[inverse]
    total = ranks[: len(inside)].sum() - len(inside) * (len(inside) + 1) / 2
    return float(total / (len(inside) * len(outside)))
