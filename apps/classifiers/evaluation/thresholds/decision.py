"""Thresholds below which a classifier gives no label. Pure numpy.

Two thresholds, because there are two reasons: "unsure" is a text between the labels (its calibrated
probability is low), "none of these" is a text unlike anything it was trained on (its familiarity is
low, see `familiarity`; of classifiers without a sample of their training texts, older and imported
ones, the largest logit). How familiar a text is does not follow from how likely its label is: of
two labels one is always likely.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

MIN_CONFIDENCE = 0.5  # less sure than a coin
MIN_CONFIDENCE_OF_TWO = 0.6  # of two labels one always has half
KEPT_SHARE = 0.99  # of texts like those it was trained on
MIN_KEPT_SHARE = 0.8


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
    """Both thresholds. `unsure` 0 and `kept` 1 let everything through."""

    unsure: float = MIN_CONFIDENCE
    """Calibrated probability below which it says "unsure"."""
    kept: float = KEPT_SHARE
    """Share of in-scope texts that pass the second threshold: says where the next two come from."""
    max_logit: float = -np.inf
    """Largest logit below which it says "none of these", where it knows no familiarity."""
    familiar: float | None = None
    """Familiarity below which it says so; None for one that knows the largest logit only."""
    by_label: Mapping[str, float] = field(default_factory=dict)
    """Labels with a minimum confidence of their own, in place of `unsure`."""

    @classmethod
    def read(cls, stored: dict[str, Any]) -> Self:
        if not stored:
            return cls()
        return cls(
            float(stored["unsure"]),
            float(stored["kept"]),
            _finite_or_open(stored.get("max_logit")),
            _finite_or_open(stored["familiar"]) if "familiar" in stored else None,
            {label: float(least) for label, least in stored.get("labels", {}).items()},
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON, which has no infinity."""
        found: dict[str, Any] = {
            "unsure": self.unsure,
            "kept": self.kept,
            "max_logit": _finite_or_none(self.max_logit),
        }
        if self.familiar is not None:
            found["familiar"] = _finite_or_none(self.familiar)
        if self.by_label:
            found["labels"] = dict(self.by_label)
        return found

    @property
    def limit(self) -> float:
        """The score below which it says "none of these"."""
        return self.max_logit if self.familiar is None else self.familiar

    def min_confidence(self, label: str) -> float:
        """The confidence below which this label is not given."""
        return self.by_label.get(label, self.unsure)

    def decide(self, confidence: float, score: float, label: str = "") -> Refusal:
        """Args:
        score: the familiarity, or the largest logit of one that knows no other.
        label: the most likely one; its own threshold counts where it has one.
        """
        if score < self.limit:
            return Refusal.NONE_OF_THESE
        return Refusal.UNSURE if confidence < self.min_confidence(label) else Refusal.NOTHING


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
