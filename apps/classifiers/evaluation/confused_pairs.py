"""Find the pairs of labels that a classifier confuses most. Pure numpy."""

from dataclasses import dataclass

import numpy as np

from apps.classifiers.evaluation.statistics.metrics import Codes


@dataclass(frozen=True, slots=True)
class ConfusedPair:
    """Rows of one label that were taken for another."""

    label: str
    predicted: str
    count: int
    support: int
    rows: list[int]


def most_confused_pairs(
    truth: Codes, predicted: Codes, labels: list[str], *, limit: int = 12, rows: int = 3
) -> list[ConfusedPair]:
    """The pairs of true and predicted label with the most mistakes, with some of the rows."""
    wrong = np.flatnonzero(truth != predicted)
    pairs, counts = np.unique(truth[wrong] * len(labels) + predicted[wrong], return_counts=True)
    support = np.bincount(truth, minlength=len(labels))
    found: list[ConfusedPair] = []
    for place in np.argsort(-counts, kind="stable")[:limit]:
        mine, theirs = divmod(int(pairs[place]), len(labels))
        of_pair = wrong[(truth[wrong] == mine) & (predicted[wrong] == theirs)]
        found.append(
            ConfusedPair(
                label=labels[mine],
                predicted=labels[theirs],
                count=int(counts[place]),
                support=int(support[mine]),
                rows=of_pair[:rows].tolist(),
            )
        )
    return found
