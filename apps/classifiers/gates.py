"""When a classifier should rather not answer. Pure numpy.

Two gates, because there are two reasons: "unsure" is a text between the labels (its calibrated
probability is low), "none of these" is a text unlike anything it was trained on (its largest logit
is low). The largest logit tells strangers from doubtful rows far better than the probability does,
which is shared out among the labels whatever the text is (Hendrycks et al. 2022; on CLINC150 with
our recipe AUROC 0.974 against 0.947).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

UNSURE_BELOW = 0.5  # less sure than a coin
KEPT = 0.99  # of texts like those it was trained on
KEPT_AT_LEAST = 0.8


class Gate(StrEnum):
    OPEN = ""
    UNSURE = "unsure"
    NONE = "none_of_these"

    @property
    def words(self) -> str:
        return {Gate.OPEN: "", Gate.UNSURE: "unsure", Gate.NONE: "none of these"}[self]


@dataclass(frozen=True, slots=True)
class Gates:
    """Two thresholds. A gate of 0 and of kept 1 lets everything through."""

    unsure: float = UNSURE_BELOW
    """Calibrated probability below which it says "unsure"."""
    kept: float = KEPT
    """Share of in-scope texts that pass the second gate: says where `max_logit` comes from."""
    max_logit: float = -np.inf
    """Largest logit below which it says "none of these"."""

    @classmethod
    def read(cls, stored: dict[str, Any]) -> Self:
        if not stored:
            return cls()
        lowest = stored.get("max_logit")
        return cls(
            float(stored["unsure"]),
            float(stored["kept"]),
            -np.inf if lowest is None else float(lowest),
        )

    def as_dict(self) -> dict[str, float | None]:
        """For JSON, which has no infinity."""
        lowest = float(self.max_logit)
        return {
            "unsure": self.unsure,
            "kept": self.kept,
            "max_logit": lowest if np.isfinite(lowest) else None,
        }

    def decide(self, confidence: float, max_logit: float) -> Gate:
        if max_logit < self.max_logit:
            return Gate.NONE
        return Gate.UNSURE if confidence < self.unsure else Gate.OPEN


@dataclass(frozen=True, slots=True)
class Passed:
    """What two gates do to rows whose answer is known."""

    rows: int
    answered: int
    right: int
    unsure: int
    none: int
    strangers: int
    """Out-of-scope rows ..."""
    caught: int
    """... and those of them that get no label."""

    @property
    def coverage(self) -> float | None:
        """Of texts like those it was trained on, how many get a label."""
        return self.answered / self.rows if self.rows else None

    @property
    def precision(self) -> float | None:
        """How many of those labels are right."""
        return self.right / self.answered if self.answered else None

    @property
    def recall(self) -> float | None:
        """How many of the out-of-scope texts get no label."""
        return self.caught / self.strangers if self.strangers else None


def threshold(max_logits: Floats, kept: float) -> float:
    """The largest logit that this share of in-scope rows, judged out of fold, is at or above."""
    if kept >= 1 or not len(max_logits):
        return -float("inf")
    return float(np.quantile(max_logits, 1 - kept))


def passed(
    confidence: Floats,
    max_logit: Floats,
    right: NDArray[np.bool_],
    gates: Gates,
    *,
    strange_confidence: Floats | None = None,
    strange_max_logit: Floats | None = None,
) -> Passed:
    """The rows behind the gates, and the out-of-scope ones where there are some."""
    none = max_logit < gates.max_logit
    unsure = ~none & (confidence < gates.unsure)
    answered = ~none & ~unsure
    strangers = caught = 0
    if strange_confidence is not None and strange_max_logit is not None:
        strangers = len(strange_confidence)
        caught = int(
            ((strange_max_logit < gates.max_logit) | (strange_confidence < gates.unsure)).sum()
        )
    return Passed(
        rows=len(confidence),
        answered=int(answered.sum()),
        right=int((answered & right).sum()),
        unsure=int(unsure.sum()),
        none=int(none.sum()),
        strangers=strangers,
        caught=caught,
    )


def best_kept(max_logits: Floats, strange_max_logits: Floats) -> float:
    """The share to keep at which in-scope kept plus out-of-scope caught is largest (Youden)."""
    shares = np.linspace(KEPT_AT_LEAST, 0.995, 40)
    limits = np.quantile(max_logits, 1 - shares)
    caught = (strange_max_logits[None, :] < limits[:, None]).mean(axis=1)
    return round(float(shares[int((shares + caught).argmax())]), 3)


def area(inside: Floats, outside: Floats) -> float:
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
