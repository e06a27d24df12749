"""Logits into probabilities that mean what they say: one temperature. Pure numpy.

The temperature is fitted on rows the model had not seen. With few rows there may be no mistake
among them, and plain likelihood then has no maximum: the surer, the likelier. Hence Platt's
targets (Platt 1999, "Probabilistic Outputs for Support Vector Machines", section 2.2): a row of a
label with n texts counts as (n + 1) / (n + 2) for its label, and the rest, about one mistake a
label, for the label it would be taken for. Spread over all labels that rest would fit the tails
(label smoothing), not the confidence. As rows come in it vanishes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Codes = NDArray[np.int64]

CHUNK = 20_000  # rows: a million of a thousand labels would fill the memory
COLDEST, HOTTEST = 0.02, 50.0
STEPS = 24  # halvings: to a millionth
ENOUGH_MISTAKES = 10
"""Below, the temperature comes from the targets rather than from the data."""


@dataclass(frozen=True, slots=True)
class Calibration:
    temperature: float
    losses: NDArray[np.float64]
    """(n,) the loss of each row against Platt's targets, calibrated."""
    at_bound: bool
    """It ended at COLDEST or HOTTEST: the logits say nothing of how sure one may be."""

    @property
    def loss(self) -> float:
        return float(self.losses.mean())


def softmax(logits: Floats, temperature: float = 1.0) -> Floats:
    """Probabilities per row: (n, labels)."""
    scaled = logits / np.float32(temperature)
    scaled -= scaled.max(axis=1, keepdims=True)
    np.exp(scaled, out=scaled)
    scaled /= scaled.sum(axis=1, keepdims=True)
    return scaled


def calibrate(
    logits: Floats, labels: Codes, *, counts: Codes | None = None, shift: Floats | None = None
) -> Calibration:
    """The T at which softmax(logits / T + shift) is likeliest, and its losses.

    The slope of the loss is monotone in 1 / T, so its root is found by halving.

    Args:
        logits: (n, labels), each row by a model that had not seen it.
        labels: (n,)
        counts: (labels,) texts of each label; None to count the rows.
        shift: (labels,) added after the division.
    """
    texts = np.bincount(labels, minlength=logits.shape[1]) if counts is None else counts
    doubt = 1 / (texts[labels] + 2)
    rival = _rivals(logits, labels)
    rows = np.arange(len(labels))
    wanted = (1 - doubt) * logits[rows, labels] + doubt * logits[rows, rival]
    low, high = np.log(1 / HOTTEST), np.log(1 / COLDEST)
    for _ in range(STEPS):
        middle = (low + high) / 2
        if _expected(logits, np.exp(middle), shift) > float(wanted.mean()):  # too sure of itself
            high = middle
        else:
            low = middle
    inverse = float(np.exp((low + high) / 2))
    losses = _totals(logits, inverse, shift) - inverse * wanted
    if shift is not None:
        losses -= (1 - doubt) * shift[labels] + doubt * shift[rival]
    at_bound = bool(np.isclose(inverse, 1 / COLDEST) or np.isclose(inverse, 1 / HOTTEST))
    return Calibration(1 / inverse, losses, at_bound)


def _rivals(logits: Floats, labels: Codes) -> Codes:
    """The likeliest label of each row that is not its own: (n,)."""
    found = np.empty(len(labels), dtype=np.int64)
    for part in _parts(len(labels)):
        others = logits[part].copy()
        others[np.arange(len(others)), labels[part]] = -np.inf
        found[part] = others.argmax(axis=1)
    return found


def _expected(logits: Floats, inverse: float, shift: Floats | None) -> float:
    """The mean logit by the model's own probabilities."""
    total = 0.0
    for part in _parts(len(logits)):
        scaled, _ = _scaled(logits[part], inverse, shift)
        weights = np.exp(scaled, out=scaled)
        sums = (weights * logits[part]).sum(axis=1, dtype=np.float64)
        total += float((sums / weights.sum(axis=1, dtype=np.float64)).sum())
    return total / len(logits)


def _totals(logits: Floats, inverse: float, shift: Floats | None) -> NDArray[np.float64]:
    """log(sum(exp(logits / T + shift))) of each row: (n,)."""
    found = np.empty(len(logits))
    for part in _parts(len(logits)):
        scaled, largest = _scaled(logits[part], inverse, shift)
        found[part] = largest + np.log(np.exp(scaled, out=scaled).sum(axis=1, dtype=np.float64))
    return found


def _scaled(part: Floats, inverse: float, shift: Floats | None) -> tuple[Floats, Floats]:
    scaled = part * np.float32(inverse)
    if shift is not None:
        scaled += shift
    largest = scaled.max(axis=1)
    scaled -= largest[:, None]
    return scaled, largest


def _parts(rows: int) -> list[slice]:
    return [slice(start, start + CHUNK) for start in range(0, rows, CHUNK)]
