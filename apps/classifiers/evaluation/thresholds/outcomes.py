"""Measure thresholds on rows whose answer is known. Pure numpy."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.evaluation.row_results import PredictedRows
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
    least: Floats | None = None,
    out_of_scope_confidence: Floats | None = None,
    out_of_scope_score: Floats | None = None,
) -> ThresholdOutcome:
    """The rows behind the thresholds, and the out-of-scope ones where there are some.

    Args:
        least: (n,) the minimum confidence of each in-scope row, by its label; None: of all alike.
    """
    none = score < gates.limit
    unsure = ~none & (confidence < (gates.unsure if least is None else least))
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


@dataclass(frozen=True, slots=True)
class LabelOutcome:
    """What thresholds leave of one label."""

    label: str
    threshold: float
    own: bool
    """It has a threshold of its own."""
    precision: float | None
    """Share of the rows that get this label and have it; None if none gets it."""
    recall: float | None
    """Share of its rows that get it; None without such rows."""


def label_outcomes(
    rows: PredictedRows, labels: Sequence[str], chosen: Thresholds
) -> list[LabelOutcome]:
    """Precision and recall of each label once texts are declined, those with own thresholds first.

    Then come the least precise, where a threshold helps most.
    """
    least = np.asarray([chosen.min_confidence(label) for label in labels], dtype=np.float32)
    given = (rows.familiarity >= chosen.limit) & (rows.confidence >= least[rows.predicted])
    size = len(labels)
    said = np.bincount(rows.predicted[given], minlength=size)
    right = np.bincount(rows.predicted[given & rows.correct], minlength=size)
    support = np.bincount(rows.truth[rows.truth >= 0], minlength=size)
    found = [
        LabelOutcome(
            label,
            chosen.min_confidence(label),
            label in chosen.by_label,
            int(right[at]) / int(said[at]) if said[at] else None,
            int(right[at]) / int(support[at]) if support[at] else None,
        )
        for at, label in enumerate(labels)
    ]
    return sorted(
        found, key=lambda one: (not one.own, 2 if one.precision is None else one.precision)
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
