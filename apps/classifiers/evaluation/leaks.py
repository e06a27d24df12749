"""Duplicates, near-duplicates and contradictory labels among the rows of a run."""

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.evaluation.row_results import RowResults
from apps.classifiers.evaluation.row_texts import SHOWN_TEXT
from apps.classifiers.run_results import CitedRow, LeakPair, Leaks
from apps.classifiers.training.rows import RowVectors, TrainingRows
from apps.similarity.cosine import MAX_COMPARISONS, NEAR, VERY_NEAR, NearestRows, find_nearest

Codes = NDArray[np.int64]

PAIRS_KEPT = 200


def count_duplicates(groups: Codes) -> int:
    """Rows whose text was there before."""
    return len(groups) - len(np.unique(groups))


def count_label_conflicts(groups: Codes, labels: Codes) -> int:
    """Texts that carry more than one label."""
    pairs = np.unique(np.stack([groups, labels]), axis=1)
    _, counts = np.unique(pairs[0], return_counts=True)
    return int((counts > 1).sum())


def find_leaks(
    rows: TrainingRows,
    labels: list[str],
    codes: Codes,
    vectors: RowVectors,
    known: RowResults,
    *,
    seed: int,
) -> Leaks:
    """Find duplicates between training and test rows, and measure the accuracy without them."""
    train, test = rows.train, rows.test
    groups = rows.groups
    exact = np.isin(groups[test], groups[train])
    near = find_nearest(vectors.test, vectors.train, max_comparisons=MAX_COMPARISONS, seed=seed)
    copied = exact.copy()
    copied[near.rows[near.is_near]] = True
    clean = ~copied
    right = known.test.correct
    other = codes[test][near.rows] != codes[train][near.partner]
    labelled = rows.labelled
    return Leaks(
        copies=count_duplicates(groups[labelled]),
        train_copies=count_duplicates(groups[train]),
        conflicts=count_label_conflicts(groups[labelled], codes[labelled]),
        test_rows=int(test.sum()),
        test_exact=int(exact.sum()),
        test_near=int((near.cosine >= NEAR).sum()),
        test_very_near=int((near.cosine >= VERY_NEAR).sum()),
        test_near_other_label=int((near.is_near & other).sum()),
        compared=len(near.rows),
        threshold=NEAR,
        accuracy_all=float(right.mean()),
        clean_rows=int(clean.sum()),
        accuracy_clean=float(right[clean].mean()) if clean.any() else None,
        pairs=_pairs(rows, near, other),
    )


def _pairs(rows: TrainingRows, near: NearestRows, other: NDArray[np.bool_]) -> list[LeakPair]:
    """Cite the near pairs: those with different labels (`other`) first, then the nearest."""
    test_places, train_places = np.flatnonzero(rows.test), np.flatnonzero(rows.train)
    order = np.lexsort((-near.cosine, ~other))
    shown = order[near.is_near[order]][:PAIRS_KEPT]
    return [
        _pair(
            rows,
            test_places[near.rows[place]],
            train_places[near.partner[place]],
            float(near.cosine[place]),
        )
        for place in shown.tolist()
    ]


def _pair(rows: TrainingRows, test: int, train: int, cosine: float) -> LeakPair:
    exact = bool(rows.groups[test] == rows.groups[train])
    return LeakPair(min(1.0, cosine), exact, _cited(rows, test), _cited(rows, train))


def _cited(rows: TrainingRows, place: int) -> CitedRow:
    return CitedRow(rows.origins[place], rows.labels[place], rows.texts[place][:SHOWN_TEXT])
