"""The rows of a run: which are trained on, which judge, and which are neither."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.classifiers import trainer
from apps.classifiers.models import Classifier
from apps.classifiers.splits import text_groups
from apps.datasets.formats import duplicate_key
from apps.datasets.models import Dataset, Split
from apps.datasets.services import make_split, read_snapshot, snapshot

HELD_OUT = 0.2
MAX_LABELS = 1_000
# A row labelled so is like nothing the classifier shall know. It is never trained on as a label.
STRANGE_LABELS = frozenset({"oos", "out_of_scope", "out of scope", "out-of-scope"})


class CannotTrain(Exception):
    """The data does not allow it. The message says what is missing and where."""


@dataclass
class Rows:
    """Texts of all kinds, those of the dataset first, then those of the test set.

    A row is labelled (trained on or judged on), out of scope ("strange"), or has no label yet.
    """

    texts: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)
    splits: list[str] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    """0: of the dataset trained on, 1: of the test set."""
    test: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    test_source: str = ""
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    """Which versions of which datasets these are."""
    _groups: NDArray[np.int64] | None = None

    def add(self, dataset: Dataset, source: int) -> None:
        ref = snapshot(dataset)
        self.snapshots.append(asdict(ref))
        for example in read_snapshot(ref):
            self.texts.append(example.text)
            self.labels.append(example.label)
            self.origins.append(example.origin or f"example {example.index + 1}")
            self.indices.append(example.index)
            self.splits.append(example.split)
            self.sources.append(source)

    def only(self, keep: NDArray[np.bool_]) -> "Rows":
        places = np.flatnonzero(keep).tolist()
        return Rows(
            [self.texts[place] for place in places],
            [self.labels[place] for place in places],
            [self.origins[place] for place in places],
            [self.indices[place] for place in places],
            [self.splits[place] for place in places],
            [self.sources[place] for place in places],
            self.test[keep] if len(self.test) else self.test,
            self.test_source,
            self.snapshots,
        )

    @property
    def strange(self) -> NDArray[np.bool_]:
        marks = (label.casefold() in STRANGE_LABELS for label in self.labels)
        return np.fromiter(marks, dtype=np.bool_, count=len(self.labels))

    @property
    def unlabelled(self) -> NDArray[np.bool_]:
        """Rows a person could label: never one that shall judge."""
        facts = zip(self.labels, self.splits, self.sources, strict=True)
        marks = (
            not label and split != Split.TEST and source == 0 for label, split, source in facts
        )
        return np.fromiter(marks, dtype=np.bool_, count=len(self.labels))

    @property
    def labelled(self) -> NDArray[np.bool_]:
        marks = (bool(label) for label in self.labels)
        return np.fromiter(marks, dtype=np.bool_, count=len(self.labels)) & ~self.strange

    @property
    def groups(self) -> NDArray[np.int64]:
        """The same number for rows with the same text."""
        if self._groups is None:
            self._groups = text_groups([duplicate_key(text) for text in self.texts])
        return self._groups

    @property
    def hash(self) -> str:
        """Of everything that decides the outcome: texts, labels, order, which side."""
        digest = hashlib.sha256()
        for text, label, test in zip(self.texts, self.labels, self.test.tolist(), strict=True):
            digest.update(json.dumps([text, label, test]).encode())
        return digest.hexdigest()


def gather_rows(classifier: Classifier, *, seed: int) -> Rows:
    """The rows of the dataset and of the test set, each marked whether it judges.

    Judging: the test set that was chosen; else the rows the dataset marks as test; else those it
    marks as validation; else a fifth of each label, drawn with the seed, rows with the same text
    together. That fifth is marked in the dataset: the same rows judge every later run, and no queue
    ever has them relabelled. Rows that had a split keep it.

    Raises:
        CannotTrain: the dataset is gone, or too small to hold rows back.
    """
    if classifier.dataset is None:
        raise CannotTrain("The dataset of this classifier was deleted. Make a new classifier.")
    rows = Rows()
    rows.add(classifier.dataset, source=0)
    marked = _marked(rows)
    if classifier.test_dataset is not None:
        rows = rows.only(~marked)  # its own test rows were for judging, never for training
        rows.add(classifier.test_dataset, source=1)
        rows.test = np.asarray(rows.sources) == 1
        rows.test_source = f"the dataset “{classifier.test_dataset.name}”"
    elif (marked & rows.labelled).any():
        rows.test = marked
        rows.test_source = "the rows the dataset marks as test"
    elif (judging := _marked(rows, Split.VALIDATION) & rows.labelled).any():
        rows.test = judging
        rows.test_source = "the rows the dataset marks as validation"
    else:
        rows = _set_aside(classifier.dataset, rows, seed)
        rows.test_source = "a fifth of the rows, set aside in the dataset"
    rows.test &= rows.labelled
    return rows


def _set_aside(dataset: Dataset, rows: Rows, seed: int) -> Rows:
    labelled = rows.labelled
    names = [label for label, use in zip(rows.labels, labelled, strict=True) if use]
    _check_counts(names, rows.groups[labelled], minimum=trainer.MIN_TEXTS + 1)
    try:
        make_split(dataset, share=HELD_OUT, seed=seed, wait=True)
    except ValueError as error:
        raise CannotTrain(str(error)) from error
    rows = Rows()
    rows.add(dataset, source=0)
    rows.test = _marked(rows)
    return rows


def _marked(rows: Rows, split: Split = Split.TEST) -> NDArray[np.bool_]:
    return np.asarray([found == split for found in rows.splits], dtype=np.bool_)


def check_rows(rows: Rows) -> tuple[list[str], NDArray[np.int64]]:
    """The labels in order, and each row's label as a number; -1 for rows that have none.

    Raises:
        CannotTrain: a label has too few texts, or the test rows have a label nobody trains.
    """
    train = rows.labelled & ~rows.test
    train_labels = [label for label, use in zip(rows.labels, train, strict=True) if use]
    labels = sorted(set(train_labels))
    if len(labels) < 2:
        raise CannotTrain(
            "There is only one label. A classifier needs at least two to choose between."
            if labels
            else "There is no row to train on."
        )
    if len(labels) > MAX_LABELS:
        raise CannotTrain(
            f"There are {len(labels):,} different labels; at most {MAX_LABELS:,} can be trained. "
            "Is another column the label?"
        )
    tested = {label for label, test in zip(rows.labels, rows.test, strict=True) if test}
    unknown = sorted(tested - set(labels))
    if unknown:
        raise CannotTrain(
            f"{_named(unknown)} in the test rows but never in the training rows. "
            "Add training rows for it, or choose another test set."
        )
    if not rows.test.any():
        raise CannotTrain("There is no row to judge the classifier on.")
    _check_counts(train_labels, rows.groups[train], minimum=trainer.MIN_TEXTS)
    place = {label: number for number, label in enumerate(labels)}
    codes = [place.get(label, -1) for label in rows.labels]
    return labels, np.asarray(codes, dtype=np.int64)


def _check_counts(labels: Sequence[str], groups: NDArray[np.int64], *, minimum: int) -> None:
    """A text that carries two labels counts for the one it came with first."""
    _, first = np.unique(groups, return_index=True)
    texts = Counter(labels[place] for place in first.tolist())
    few = sorted(label for label in set(labels) if texts[label] < minimum)
    if few:
        counts = ", ".join(f"“{label}” has {texts[label]}" for label in few[:5])
        more = f" and {len(few) - 5} more labels have too few" if len(few) > 5 else ""
        raise CannotTrain(
            f"Each label needs at least {minimum} different texts: {counts}{more}. "
            "Add examples, or remove these labels."
        )


def _named(labels: list[str]) -> str:
    shown = ", ".join(f"“{label}”" for label in labels[:5])
    more = f" and {len(labels) - 5} more" if len(labels) > 5 else ""
    return f"The label {shown} is" if len(labels) == 1 else f"The labels {shown}{more} are"
