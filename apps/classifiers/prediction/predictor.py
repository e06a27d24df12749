"""A trained classifier at work: numpy alone, read from two files that cannot run code.

`<run>.npz` holds the arrays, `<run>.json` what they mean. The JSON is written last and names the
hash of the arrays: without it, or with another hash, there is no classifier.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.evaluation.calibration import softmax
from apps.classifiers.evaluation.familiarity import Familiarity

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ModelCard:
    """The meaning of the arrays."""

    labels: list[str]
    dimensions: int
    temperature: float
    embedding_model: str
    embedding_fingerprint: str
    preparation: dict[str, Any] = field(default_factory=dict)
    """The preparation of texts: see `embeddings.preparation.Preparation`."""
    favour: list[float] = field(default_factory=list)
    """Of each label, added to its logit before the largest is chosen, not for probabilities: rare
    labels that are weighed like common ones. Empty where none is favoured."""
    familiarity: dict[str, float] = field(default_factory=dict)
    """What `Familiarity` holds besides its sample; empty where there is none."""


@dataclass(frozen=True, slots=True)
class RankedLabel:
    label: str
    confidence: float


@dataclass(frozen=True, slots=True)
class TextScores:
    """Ranked labels of one text, and how familiar the text is."""

    top: list[RankedLabel]
    """The label it gives comes first, also where a favoured one is given that is less likely."""
    max_logit: float
    score: float
    """Compared with the out-of-scope threshold: the familiarity, or else the largest logit."""


@dataclass(frozen=True, slots=True)
class Predictor:
    card: ModelCard
    weights: Floats
    bias: Floats
    familiarity: Familiarity | None = None
    """None in runs from before it was kept, and in imported ones."""

    def logits(self, vectors: Floats) -> Floats:
        """One column per label in the order of `card.labels`: (n, labels).

        Raises:
            ValueError: the vectors have another width than those it was trained on.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.card.dimensions:
            raise ValueError(
                f"The classifier was trained on vectors of {self.card.dimensions} numbers, "
                f"these have {vectors.shape[-1]}."
            )
        return vectors @ self.weights.T + self.bias

    def probabilities(self, vectors: Floats) -> Floats:
        """Calibrated: (n, labels)."""
        return softmax(self.logits(vectors), self.card.temperature)

    def score_texts(self, vectors: Floats, *, count: int = 3) -> list[TextScores]:
        """The labels of each vector with their probability, best first."""
        logits = self.logits(vectors)
        largest = logits.max(axis=1)
        familiar = largest if self.familiarity is None else self.familiarity.score(vectors, largest)
        probabilities = softmax(logits, self.card.temperature)
        count = min(count, len(self.card.labels))
        scores = logits
        if self.card.favour:
            scores = logits + np.asarray(self.card.favour, dtype=np.float32)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
        return [
            TextScores(
                [RankedLabel(self.card.labels[at], float(row[at])) for at in places], *scores_of
            )
            for row, places, *scores_of in zip(
                probabilities, order, largest.tolist(), familiar.tolist(), strict=True
            )
        ]

    def top(self, vectors: Floats, *, count: int = 3) -> list[list[RankedLabel]]:
        return [judgement.top for judgement in self.score_texts(vectors, count=count)]
