"""Which rows a person should look at next, from one pass over rows no model had seen. Pure numpy.

Label errors by confident learning (Northcutt, Jiang and Chuang 2021, "Confident Learning:
Estimating Uncertainty in Dataset Labels", JAIR 70): a row is suspect where another label is
predicted with at least the confidence that rows of that label usually get.
"""

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.evaluation.calibration import softmax

Floats = NDArray[np.float32]
Codes = NDArray[np.int64]

CHUNK = 20_000
CANDIDATES = 2_000  # the most uncertain rows, of which different ones are chosen


def find_label_errors(
    logits: Floats, truth: Codes, *, temperature: float
) -> tuple[NDArray[np.bool_], Codes, Floats]:
    """Rows whose label is probably wrong.

    Args:
        logits: (n, labels), each row by a model that had not seen it.
        truth: (n,) the labels given.

    Returns:
        Whether each row is suspect, the label it should rather have, and the probability of the
        label it has: the smaller, the more suspect. Each (n,).
    """
    count = logits.shape[1]
    sums, seen = np.zeros(count), np.zeros(count)
    given = np.empty(len(truth), dtype=np.float32)
    for start in range(0, len(truth), CHUNK):
        part = truth[start : start + CHUNK]
        probabilities = softmax(logits[start : start + CHUNK], temperature)
        mine = probabilities[np.arange(len(part)), part]
        given[start : start + CHUNK] = mine
        sums += np.bincount(part, weights=mine, minlength=count)
        seen += np.bincount(part, minlength=count)
    usual = (sums / np.maximum(seen, 1)).astype(np.float32)
    suspect = np.zeros(len(truth), dtype=np.bool_)
    better = np.asarray(truth, dtype=np.int64).copy()
    for start in range(0, len(truth), CHUNK):
        part = truth[start : start + CHUNK]
        probabilities = softmax(logits[start : start + CHUNK], temperature)
        confident = np.where(probabilities >= usual, probabilities, -1)
        best = confident.argmax(axis=1)
        found = (confident[np.arange(len(part)), best] > 0) & (best != part)
        # Of two labels it could have, the likelier is meant.
        found &= probabilities[np.arange(len(part)), best] > given[start : start + CHUNK]
        suspect[start : start + CHUNK] = found
        better[start : start + CHUNK] = np.where(found, best, part)
    return suspect, better, given


def most_suspicious(suspect: NDArray[np.bool_], given: Floats, *, limit: int) -> Codes:
    """The places of suspect rows, the most suspect first."""
    places = np.flatnonzero(suspect)
    return places[np.argsort(given[places], kind="stable")[:limit]].astype(np.int64)


def select_diverse_uncertain(margins: Floats, vectors: Floats, *, limit: int) -> Codes:
    """Places of rows it is unsure of and that differ: the most uncertain alone are near copies.

    Greedy: the next row is the one whose uncertainty times its distance (1 - cosine) to those
    chosen is largest.

    Args:
        margins: (n,) probability of the likeliest label minus that of the second.
        vectors: (n, d), of unit length.
    """
    candidates = np.argsort(margins, kind="stable")[:CANDIDATES]
    unsure = 1 - margins[candidates].astype(np.float32)
    points = vectors[candidates]
    nearest = np.zeros(len(candidates), dtype=np.float32)
    chosen: list[int] = []
    for _ in range(min(limit, len(candidates))):
        best = int((unsure * (1 - nearest)).argmax())
        chosen.append(best)
        nearest = np.maximum(nearest, points @ points[best])
        nearest[chosen] = 2  # never twice: the product is negative
    return candidates[chosen].astype(np.int64)
