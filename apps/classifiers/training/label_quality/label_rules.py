"""The labels of a run: which rows keep theirs, and what becomes of rare ones."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.errors import CannotTrain
from apps.classifiers.training.estimator import MIN_TEXTS
from apps.classifiers.training.rows import OUT_OF_SCOPE_LABELS, TrainingRows
from apps.datasets.models import Dataset

MAX_LABELS = 1_000
POOLED = "other"
SHOWN = 5  # names in a sentence

RareLabels = Literal["leave_out", "pool", "fail"]


@dataclass(frozen=True, slots=True)
class LabelOptions:
    """Choices for rare and out-of-scope labels."""

    rare_labels: RareLabels = "leave_out"
    rare_below: int = MIN_TEXTS
    """Different training texts; a label with fewer is rare. At least MIN_TEXTS."""
    train_oos: bool = False
    """Labels such as "oos" are labels like any other, not examples of what is out of scope."""

    @classmethod
    def read(cls, options: dict[str, Any]) -> Self:
        return cls(
            options.get("rare_labels", "leave_out"),
            max(MIN_TEXTS, int(options.get("rare_below", MIN_TEXTS))),
            bool(options.get("train_oos", False)),
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def check_dataset(dataset: Dataset, choices: LabelOptions | None = None) -> None:
    """Check the label counts, before anything is queued or read.

    Raises:
        CannotTrain: fewer than two labels, or too many.
    """
    oos = choices is not None and choices.train_oos
    labels = [label for label in dataset.label_counts if label]
    _check_labels([one for one in labels if oos or one.casefold() not in OUT_OF_SCOPE_LABELS])


def _check_labels(labels: Sequence[str]) -> None:
    if not labels:
        raise CannotTrain("No row to train on has a label. Label some rows first.")
    if len(labels) < 2:
        raise CannotTrain(
            f"There is only one label to train, “{labels[0]}”. A classifier needs at least two to "
            "choose between."
        )
    if len(labels) > MAX_LABELS:
        raise CannotTrain(
            f"There are {len(labels):,} labels and the limit is {MAX_LABELS:,}. Check that the "
            "right column is the label."
        )


def resolve_labels(
    rows: TrainingRows, choices: LabelOptions
) -> tuple[TrainingRows, NDArray[np.bool_]]:
    """Return the rows that can be used, and which those are: (rows before,). Notes say what is not.

    Rare labels are left out or pooled, as chosen. Test rows of labels that are never trained cannot
    come out right: they are left out too, and counted.

    Raises:
        CannotTrain: rare labels are to fail the run, or too little is left.
    """
    labels, keep, notes = _resolve_rare(rows, choices)
    unseen = _unseen(rows, labels, keep)
    if unseen.any():
        names = Counter(label for label, out in zip(labels, unseen.tolist(), strict=True) if out)
        notes.append(
            f"{_counted(int(unseen.sum()), 'test row')} with labels that are never trained "
            f"({_listed(names)}) are not part of the scores."
        )
        keep &= ~unseen
    resolved = replace(
        rows,
        labels=labels,
        notes=[*rows.notes, *notes],
        unseen=rows.unseen + int(unseen.sum()),
    )
    resolved = resolved.only(keep)
    encode_labels(resolved)
    return resolved, keep


def _resolve_rare(
    rows: TrainingRows, choices: LabelOptions
) -> tuple[list[str], NDArray[np.bool_], list[str]]:
    """Return the labels after pooling, the rows to keep, and notes.

    Raises:
        CannotTrain: rare labels are to fail the run.
    """
    keep = np.ones(len(rows.texts), dtype=np.bool_)
    texts = _texts_of_labels(rows)
    rare = {label: count for label, count in texts.items() if count < choices.rare_below}
    if not rare:
        return list(rows.labels), keep, []
    what = f"{_counted(len(rare), 'label')} with fewer than {choices.rare_below} different "
    what += f"training texts ({_listed(rare)})"
    if choices.rare_labels == "fail":
        raise CannotTrain(
            f"There {'is' if len(rare) == 1 else 'are'} {what}. Add examples, remove them, or "
            "have rare labels left out or pooled."
        )
    is_enough = sum(rare.values()) + texts.get(POOLED, 0) >= choices.rare_below
    if choices.rare_labels == "pool" and is_enough:
        labels = [POOLED if label in rare else label for label in rows.labels]
        return labels, keep, [f"{what} were pooled as “{POOLED}”."]
    keep &= rows.test | np.asarray([label not in rare for label in rows.labels], dtype=np.bool_)
    note = f"{what} were left out. Add examples, or have rare labels pooled."
    return list(rows.labels), keep, [note]


def _unseen(rows: TrainingRows, labels: list[str], keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the test rows whose label no training row has."""
    is_trained = rows.labelled & ~rows.test & keep
    trained = {label for label, use in zip(labels, is_trained.tolist(), strict=True) if use}
    return rows.test & np.asarray([label not in trained for label in labels], dtype=np.bool_)


def _texts_of_labels(rows: TrainingRows) -> Counter[str]:
    """Different training texts of each label. One with two labels counts for its first."""
    train = np.flatnonzero(rows.labelled & ~rows.test)
    _, first = np.unique(rows.groups[train], return_index=True)
    texts: Counter[str] = Counter(dict.fromkeys((rows.labels[place] for place in train), 0))
    texts.update(rows.labels[place] for place in train[first].tolist())
    return texts


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _listed(counts: Mapping[str, int]) -> str:
    first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]
    more = f" and {len(counts) - SHOWN:,} more" if len(counts) > SHOWN else ""
    return ", ".join(f"“{label}”: {count:,}" for label, count in first) + more


def encode_labels(rows: TrainingRows) -> tuple[list[str], NDArray[np.int64]]:
    """The labels in order, and each row's label as a number; -1 for rows that have none.

    Raises:
        CannotTrain: there is nothing to choose between, or nothing to judge on.
    """
    train = rows.labelled & ~rows.test
    labels = sorted({label for label, use in zip(rows.labels, train, strict=True) if use})
    _check_labels(labels)
    if not rows.test.any():
        raise CannotTrain("There are no test rows. Add examples, or choose a test set.")
    place = {label: number for number, label in enumerate(labels)}
    codes = [place.get(label, -1) for label in rows.labels]
    return labels, np.asarray(codes, dtype=np.int64)
