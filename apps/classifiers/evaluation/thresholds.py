"""When a classifier should rather not answer. Pure numpy.

Two gates, because there are two reasons: "unsure" is a text between the labels (its calibrated
probability is low), "none of these" is a text unlike anything it was trained on (its familiarity is
low, see `familiarity`; of classifiers without a sample of their training texts, older and imported
ones, the largest logit). How familiar a text is does not follow from how likely its label is: of
two labels one is always likely.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import floor, sqrt
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.evaluation.row_results import PredictedRows

Floats = NDArray[np.float32]

MIN_CONFIDENCE = 0.5  # less sure than a coin
MIN_CONFIDENCE_OF_TWO = 0.6  # of two labels one always has half
KEPT_SHARE = 0.99  # of texts like those it was trained on
MIN_KEPT_SHARE = 0.8
# Strangers may cost this share of the other texts and no more, however many of them it catches.
FEW_OUT_OF_SCOPE, MANY_OUT_OF_SCOPE = 10, 50
KEPT_SHARE_WITH_SOME, KEPT_SHARE_WITH_MANY = 0.97, 0.95


class Refusal(StrEnum):
    NOTHING = ""
    UNSURE = "unsure"
    NONE_OF_THESE = "none_of_these"

    @property
    def words(self) -> str:
        return {
            Refusal.NOTHING: "",
            Refusal.UNSURE: "unsure",
            Refusal.NONE_OF_THESE: "none of these",
        }[self]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Two thresholds. A gate of 0 and of kept 1 lets everything through."""

    unsure: float = MIN_CONFIDENCE
    """Calibrated probability below which it says "unsure"."""
    kept: float = KEPT_SHARE
    """Share of in-scope texts that pass the second gate: says where the next two come from."""
    max_logit: float = -np.inf
    """Largest logit below which it says "none of these", where it knows no familiarity."""
    familiar: float | None = None
    """Familiarity below which it says so; None for one that knows the largest logit only."""

    @classmethod
    def read(cls, stored: dict[str, Any]) -> Self:
        if not stored:
            return cls()
        return cls(
            float(stored["unsure"]),
            float(stored["kept"]),
            _finite_or_open(stored.get("max_logit")),
            _finite_or_open(stored["familiar"]) if "familiar" in stored else None,
        )

    def as_dict(self) -> dict[str, float | None]:
        """For JSON, which has no infinity."""
        found: dict[str, float | None] = {
            "unsure": self.unsure,
            "kept": self.kept,
            "max_logit": _finite_or_none(self.max_logit),
        }
        if self.familiar is not None:
            found["familiar"] = _finite_or_none(self.familiar)
        return found

    @property
    def limit(self) -> float:
        """The score below which it says "none of these"."""
        return self.max_logit if self.familiar is None else self.familiar

    def decide(self, confidence: float, score: float) -> Refusal:
        """Args:
        score: the familiarity, or the largest logit of one that knows no other.
        """
        if score < self.limit:
            return Refusal.NONE_OF_THESE
        return Refusal.UNSURE if confidence < self.unsure else Refusal.NOTHING


def _finite_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _finite_or_open(value: float | None) -> float:
    return -np.inf if value is None else float(value)


def default_min_confidence(labels: int, *, balanced: bool) -> float:
    """Return the first threshold until a person sets one.

    Rare labels that are weighed like common ones are given on purpose where they are less likely
    than not: there it stands open.
    """
    if balanced:
        return 0.0
    return MIN_CONFIDENCE_OF_TWO if labels == 2 else MIN_CONFIDENCE


@dataclass(frozen=True, slots=True)
class ThresholdOutcome:
    """What two gates do to rows whose answer is known."""

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


def score_limit(scores: Floats, kept: float) -> float:
    """The score that at least this share of texts like the scored ones is at or above.

    With enough rows their own order says it: of n + 1 rows alike each is as often the lowest (split
    conformal prediction, Vovk et al. 2005). A hundredth of twenty rows is none of them; there it
    is a bound as for normal scores, but nothing that one of the rows fell below.

    Args:
        scores: (n,) of in-scope rows, each by a model that had not seen it.
    """
    share, rows = 1 - kept, len(scores)
    if share < 1e-9 or rows < 2:
        return -float("inf")
    rank = floor(share * (rows + 1) + 1e-9)
    if rank >= 1:
        return float(np.partition(scores, rank - 1)[rank - 1])
    values = scores.astype(np.float64)
    factor = max(_student(share, rows - 1) * sqrt(1 + 1 / rows), _tolerance(3 * share, rows))
    if factor == float("inf"):
        return -factor
    return min(float(values.min()), float(values.mean() - factor * values.std(ddof=1)))


def _student(share: float, freedom: int) -> float:
    """The upper quantile of Student's t, by its expansion about the normal (Abramowitz and Stegun
    1964, 26.7.5): to a hundredth from four degrees of freedom on. scipy takes long to load."""
    z = -NormalDist().inv_cdf(share)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def _tolerance(share: float, rows: int) -> float:
    """Return the tolerance factor: in 99 of 100 samples, no more than the share of texts to come
    lies that many standard deviations below the mean (Natrella 1963, one-sided tolerance limits).
    Infinite for a handful of rows."""
    normal = NormalDist()
    content, certain = normal.inv_cdf(1 - min(share, 0.5)), normal.inv_cdf(0.99)
    a = 1 - certain**2 / (2 * (rows - 1))
    if a <= 0:
        return float("inf")
    b = content**2 - certain**2 / rows
    return (content + sqrt(content**2 - a * b)) / a


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


def thresholds_for(known: PredictedRows, *, unsure: float, kept: float, labels: int) -> Thresholds:
    """The gates that keep this share of rows like the known ones.

    Args:
        known: in-scope rows, judged by a model that had not seen them.
    """
    # Of two labels the largest logit says how sure it is, and nothing of out_of_scope.
    logit = score_limit(known.max_logit, kept) if labels > 2 else -float("inf")
    return Thresholds(unsure, kept, logit, score_limit(known.familiarity, kept))


def tuning_rows(out_of_scope: int, *, seed: int = 0) -> NDArray[np.bool_]:
    """Mark the out-of-scope rows that choose the threshold; the others test it. (n,)

    Half of them. Few choose nothing, so all of them may tell.
    """
    chosen = np.zeros(out_of_scope, dtype=np.bool_)
    if out_of_scope >= FEW_OUT_OF_SCOPE:
        chosen[np.random.default_rng(seed).permutation(out_of_scope)[: out_of_scope // 2]] = True
    return chosen


def best_kept_share(scores: Floats, out_of_scope_scores: Floats) -> float:
    """The share to keep at which in-scope kept plus out-of-scope caught is largest (Youden), chosen
    by half of the out_of_scope, within what so many of them may cost."""
    out_of_scope = len(out_of_scope_scores)
    if out_of_scope < FEW_OUT_OF_SCOPE:
        return KEPT_SHARE
    least = KEPT_SHARE_WITH_SOME if out_of_scope < MANY_OUT_OF_SCOPE else KEPT_SHARE_WITH_MANY
    shares = np.arange(0.995, least - 1e-9, -0.005)  # of equals the first: the most kept
    limits = np.asarray([score_limit(scores, float(share)) for share in shares])
    chosen = out_of_scope_scores[tuning_rows(out_of_scope)]
    caught = (chosen[None, :] < limits[:, None]).mean(axis=1)
    return round(float(shares[int((shares + caught).argmax())]), 3)


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
