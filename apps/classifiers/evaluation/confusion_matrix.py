"""The confusion matrix as a page shows it: labels with mistakes, confused ones together. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

SHADES = 4  # of red, from one mistake to the most


@dataclass(frozen=True, slots=True)
class Cell:
    """The test rows of one label that were predicted as another, or correctly."""

    truth: int
    predicted: int
    count: int
    shade: int
    """0 for correct rows, else 1 to SHADES."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Rows of one label that were predicted as another; labels by number."""

    truth: int
    predicted: int
    count: int
    support: int


def all_pairs(matrix: Counts) -> list[Pair]:
    """All pairs with mistakes, most mistakes first."""
    wrong = matrix.copy()
    np.fill_diagonal(wrong, 0)
    truth, predicted = np.nonzero(wrong)
    counts, support = wrong[truth, predicted], matrix.sum(axis=1)
    order = np.lexsort((-counts / np.maximum(support[truth], 1), -counts))
    return [
        Pair(int(truth[at]), int(predicted[at]), int(counts[at]), int(support[truth[at]]))
        for at in order
    ]


def most_confused_labels(matrix: Counts, limit: int) -> list[int]:
    """Up to `limit` labels of the worst pairs, those that are confused next to each other."""
    chosen: list[int] = []
    for pair in all_pairs(matrix):
        new = [label for label in (pair.truth, pair.predicted) if label not in chosen]
        if len(chosen) + len(new) > limit:
            continue
        chosen += new
    places = side_by_side(matrix[np.ix_(chosen, chosen)]) if chosen else []
    return [chosen[place] for place in places]


def side_by_side(matrix: Counts) -> list[int]:
    """Order labels so that those that are confused stand next to each other.

    Chains of labels are joined along the links from the strongest down, each turned so that the two
    linked labels come close.
    """
    share = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    links = np.triu(share + share.T, k=1)
    left, right = np.nonzero(links)
    chains = {label: [label] for label in range(len(matrix))}
    for at in np.argsort(-links[left, right], kind="stable"):
        _join(chains, int(left[at]), int(right[at]))
    found = {id(chain): chain for chain in chains.values()}
    return [label for chain in sorted(found.values(), key=len, reverse=True) for label in chain]


def _join(chains: dict[int, list[int]], a: int, b: int) -> None:
    first, second = chains[a], chains[b]
    if first is second:
        return
    if first.index(a) < len(first) / 2 - 0.5:
        first.reverse()
    if second.index(b) > len(second) / 2 - 0.5:
        second.reverse()
    first += second
    for label in second:
        chains[label] = first


def cells(matrix: Counts, labels: Sequence[int]) -> list[list[Cell]]:
    """A line of cells for each of these labels, with a cell for each of them."""
    part = matrix[np.ix_(labels, labels)] if labels else np.zeros((0, 0), dtype=np.int64)
    most = int((part - np.diag(np.diag(part))).max(initial=0))
    return [
        [
            Cell(truth, predicted, count, _shade(count, most) if truth != predicted else 0)
            for predicted, count in zip(labels, line, strict=True)
        ]
        for truth, line in zip(labels, part.tolist(), strict=True)
    ]


def _shade(count: int, most: int) -> int:
    return ceil(SHADES * count / max(most, SHADES)) if count else 0
