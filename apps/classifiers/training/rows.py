"""The rows of a run: which are trained on, which judge, and which are neither."""

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.training.folds import text_groups
from apps.datasets.models import Dataset, Split
from apps.datasets.services import SnapshotRef, read_snapshot, snapshot
from apps.embeddings.services import take_rows
from apps.similarity.text_key import normalise_text

# A row labelled so is like nothing the classifier shall know. It is never trained on as a label.
Floats = NDArray[np.float32]

OUT_OF_SCOPE_LABELS = frozenset({"oos", "out_of_scope", "out of scope", "out-of-scope"})


@dataclass
class TrainingRows:
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
    snapshots: list[SnapshotRef] = field(default_factory=list)
    """Which versions of which datasets these are."""
    train_oos: bool = False
    notes: list[str] = field(default_factory=list)
    """What became of rows that are not used as they are, in sentences."""
    unseen: int = 0
    """Test rows left out because their label is never trained."""
    _groups: NDArray[np.int64] | None = None

    def add(self, dataset: Dataset, source: int) -> None:
        ref = snapshot(dataset)
        self.snapshots.append(ref)
        for example in read_snapshot(ref):
            self.texts.append(example.text)
            self.labels.append(example.label)
            self.origins.append(example.origin or f"example {example.index + 1}")
            self.indices.append(example.index)
            self.splits.append(example.split)
            self.sources.append(source)

    def only(self, keep: NDArray[np.bool_]) -> "TrainingRows":
        places = np.flatnonzero(keep).tolist()
        return replace(
            self,
            texts=[self.texts[place] for place in places],
            labels=[self.labels[place] for place in places],
            origins=[self.origins[place] for place in places],
            indices=[self.indices[place] for place in places],
            splits=[self.splits[place] for place in places],
            sources=[self.sources[place] for place in places],
            test=self.test[keep] if len(self.test) else self.test,
            _groups=None,
        )

    @property
    def out_of_scope(self) -> NDArray[np.bool_]:
        marks = (
            not self.train_oos and label.casefold() in OUT_OF_SCOPE_LABELS for label in self.labels
        )
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
        return np.fromiter(marks, dtype=np.bool_, count=len(self.labels)) & ~self.out_of_scope

    @property
    def train(self) -> NDArray[np.bool_]:
        return self.labelled & ~self.test

    @property
    def groups(self) -> NDArray[np.int64]:
        """The same number for rows with the same text."""
        if self._groups is None:
            self._groups = text_groups([normalise_text(text) for text in self.texts])
        return self._groups

    @property
    def hash(self) -> str:
        """SHA-256 of everything that decides the outcome: texts, labels, order, which side."""
        digest = hashlib.sha256()
        for text, label, test in zip(self.texts, self.labels, self.test.tolist(), strict=True):
            digest.update(json.dumps([text, label, test]).encode())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class RowVectors:
    """The vectors of each kind of row, in the order of the rows: (n, dimensions)."""

    train: Floats
    test: Floats
    out_of_scope: Floats
    unlabelled: Floats

    @classmethod
    def of_rows(cls, rows: TrainingRows, vectors: Floats) -> Self:
        masks = (rows.train, rows.test, rows.out_of_scope, rows.unlabelled)
        return cls(*(take_rows(vectors, mask) for mask in masks))

    @property
    def sides(self) -> list[Floats]:
        """The four arrays in the order of `row_results.SIDES`."""
        return [self.train, self.test, self.out_of_scope, self.unlabelled]
