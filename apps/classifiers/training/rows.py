"""The rows of a run: which are trained on, which judge, and which are neither."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.errors import CannotTrain
from apps.classifiers.models import Classifier
from apps.classifiers.training import trainer
from apps.classifiers.training.folds import text_groups
from apps.datasets.models import Change, Dataset, Split
from apps.datasets.services import BeingChanged, hold_out, make_split, read_snapshot, snapshot
from apps.similarity.text_key import normalise_text

HELD_OUT = 0.2
MAX_LABELS = 1_000
# A row labelled so is like nothing the classifier shall know. It is never trained on as a label.
OUT_OF_SCOPE_LABELS = frozenset({"oos", "out_of_scope", "out of scope", "out-of-scope"})
POOLED = "other"
SHOWN = 5  # names in a sentence

RareLabels = Literal["leave_out", "pool", "fail"]


@dataclass(frozen=True, slots=True)
class LabelOptions:
    """What a person decides about labels that cannot simply be trained."""

    rare_labels: RareLabels = "leave_out"
    rare_below: int = trainer.MIN_TEXTS
    """Different training texts; a label with fewer is rare. At least MIN_TEXTS."""
    train_oos: bool = False
    """Labels such as "oos" are labels like any other, not examples of what is out of scope."""

    @classmethod
    def read(cls, options: dict[str, Any]) -> Self:
        return cls(
            options.get("rare_labels", "leave_out"),
            max(trainer.MIN_TEXTS, int(options.get("rare_below", trainer.MIN_TEXTS))),
            bool(options.get("train_oos", False)),
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


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
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    """Which versions of which datasets these are."""
    train_oos: bool = False
    notes: list[str] = field(default_factory=list)
    """What became of rows that are not used as they are, in sentences."""
    unseen: int = 0
    """Test rows left out because their label is never trained."""
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
    def groups(self) -> NDArray[np.int64]:
        """The same number for rows with the same text."""
        if self._groups is None:
            self._groups = text_groups([normalise_text(text) for text in self.texts])
        return self._groups

    @property
    def hash(self) -> str:
        """Of everything that decides the outcome: texts, labels, order, which side."""
        digest = hashlib.sha256()
        for text, label, test in zip(self.texts, self.labels, self.test.tolist(), strict=True):
            digest.update(json.dumps([text, label, test]).encode())
        return digest.hexdigest()


def gather_rows(
    classifier: Classifier, *, seed: int, choices: LabelOptions | None = None
) -> TrainingRows:
    """The rows of the dataset and of the test set, each marked whether it judges.

    Judging: the test set that was chosen; else rows marked as test; else those it
    marks as validation; else a fifth of each label, drawn with the seed, rows with the same text
    together. Where the dataset came without marks that fifth is marked in it: the same rows judge
    every later run, and no queue ever has them relabelled. Marks that were given are not changed.

    Raises:
        CannotTrain: the dataset is gone, or its labels do not allow it.
    """
    dataset, chosen = classifier.dataset, choices or LabelOptions()
    if dataset is None:
        raise CannotTrain("The dataset of this classifier was deleted. Create a new classifier.")
    check_dataset(dataset, chosen)
    rows = TrainingRows(train_oos=chosen.train_oos)
    rows.add(dataset, source=0)
    if classifier.test_dataset is not None:
        rows = _without_own_test(dataset, rows)
        rows.add(classifier.test_dataset, source=1)
        rows.test = np.asarray(rows.sources) == 1
        rows.test_source = f"the dataset “{classifier.test_dataset.name}”"
    elif (_marked(rows, Split.TEST) & rows.labelled).any():
        rows.test = _marked(rows, Split.TEST)
        rows.test_source = "rows marked as test"
        validation = int((_marked(rows, Split.VALIDATION) & rows.labelled).sum())
        if validation:
            rows.notes.append(
                f"{validation:,} validation rows are trained on: the test rows are enough to judge."
            )
    elif (_marked(rows, Split.VALIDATION) & rows.labelled).any():
        rows.test = _marked(rows, Split.VALIDATION)
        rows.test_source = "the rows the dataset marks as validation"
        rows.notes.append(
            "The dataset has no test rows: its validation rows are the test set of this run, and "
            "none of them is trained on."
        )
    else:
        rows = _hold_out(dataset, rows, seed)
    rows.test &= rows.labelled
    return rows


def _without_own_test(dataset: Dataset, rows: TrainingRows) -> TrainingRows:
    """Beside a test set of their own, rows that a person marked as test are not used; those that an
    earlier run drew for want of one are trained on again."""
    marked = _marked(rows, Split.TEST) & rows.labelled
    if not marked.any():
        return rows
    drawn = _drawn_by_a_run(dataset)
    own = marked & ~np.asarray([index in drawn for index in rows.indices], dtype=np.bool_)
    again = int((marked & ~own).sum())
    if again:
        rows.notes.append(
            f"{again:,} rows that an earlier run had held out for testing are trained on: this run "
            "has its own test set."
        )
    if own.any():
        rows.notes.append(
            f"{int(own.sum()):,} rows that the dataset marks as test are not used: this run has "
            "its own test set."
        )
    return rows.only(~own)


def _drawn_by_a_run(dataset: Dataset) -> set[int]:
    """Rows that no person, but a run without test rows marked as test."""
    changes = Change.objects.filter(
        revision__dataset=dataset,
        revision__by=None,
        revision__undone=False,
        revision__what__endswith="were set aside as test",
    ).values_list("index", "after")
    return {index for index, after in changes.iterator() if after and after["split"] == Split.TEST}


def _hold_out(dataset: Dataset, rows: TrainingRows, seed: int) -> TrainingRows:
    labelled = rows.labelled
    if any(split for split, use in zip(rows.splits, labelled, strict=True) if use):
        rows.test = np.zeros(len(rows.texts), dtype=np.bool_)
        names = [label for label, use in zip(rows.labels, labelled, strict=True) if use]
        rows.test[labelled] = hold_out(
            names, rows.groups[labelled].tolist(), share=HELD_OUT, seed=seed
        )
        rows.test_source = "a fifth of the rows, held out for this run"
        rows.notes.append(
            "The dataset marks rows, but none as test or validation: a fifth is held out for this "
            "run. The marks stay as they were given."
        )
        return rows
    try:
        make_split(dataset, share=HELD_OUT, seed=seed, wait=True)
    except BeingChanged as error:
        raise CannotTrain(str(error)) from error
    except ValueError as error:
        raise CannotTrain(f"{error} Add examples.") from error
    again = TrainingRows(train_oos=rows.train_oos)
    again.add(dataset, source=0)
    again.test = _marked(again, Split.TEST)
    again.test_source = "20% of the rows, held out in the dataset"
    again.notes.append(
        "The dataset had no test rows: a fifth of each label was marked as test in it, and judges "
        "later runs too."
    )
    return again


def _marked(rows: TrainingRows, split: Split) -> NDArray[np.bool_]:
    return np.asarray([given == split for given in rows.splits], dtype=np.bool_)


def check_dataset(dataset: Dataset, choices: LabelOptions | None = None) -> None:
    """What the counts alone tell, before anything is queued or read.

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
            f"There are {len(labels):,} different labels; at most {MAX_LABELS:,} can be trained. "
            "Is another column the label?"
        )


def resolve_labels(
    rows: TrainingRows, choices: LabelOptions
) -> tuple[TrainingRows, NDArray[np.bool_]]:
    """The rows that can be used, and which those are: (rows before,). Notes say what was left out.

    Rare labels are left out or pooled, as chosen. Test rows of labels that are never trained cannot
    come out right: they are left out too, and counted.

    Raises:
        CannotTrain: rare labels are to fail the run, or too little is left.
    """
    keep = np.ones(len(rows.texts), dtype=np.bool_)
    texts = _texts_of_labels(rows)
    rare = {label: count for label, count in texts.items() if count < choices.rare_below}
    labels, notes = list(rows.labels), []
    if rare:
        what = f"{_counted(len(rare), 'label')} with fewer than {choices.rare_below} different "
        what += f"training texts ({_listed(rare)})"
        pooled = choices.rare_labels == "pool"
        pooled = pooled and sum(rare.values()) + texts.get(POOLED, 0) >= choices.rare_below
        if choices.rare_labels == "fail":
            raise CannotTrain(
                f"There {'is' if len(rare) == 1 else 'are'} {what}. Add examples, remove them, or "
                "have rare labels left out or pooled."
            )
        if pooled:
            labels = [POOLED if label in rare else label for label in labels]
            notes.append(f"{what} were pooled as “{POOLED}”.")
        else:
            keep &= rows.test | np.asarray([label not in rare for label in labels], dtype=np.bool_)
            notes.append(f"{what} were left out. Add examples, or have rare labels pooled.")
    trained = {
        label
        for label, known, test, use in zip(
            labels, rows.labelled.tolist(), rows.test.tolist(), keep.tolist(), strict=True
        )
        if known and not test and use
    }
    unseen = rows.test & np.asarray([label not in trained for label in labels], dtype=np.bool_)
    if unseen.any():
        names = Counter(label for label, out in zip(labels, unseen.tolist(), strict=True) if out)
        notes.append(
            f"{_counted(int(unseen.sum()), 'test row')} with labels that are never trained "
            f"({_listed(names)}) are not part of the scores."
        )
        keep &= ~unseen
    settled = replace(
        rows,
        labels=labels,
        notes=[*rows.notes, *notes],
        unseen=rows.unseen + int(unseen.sum()),
    )
    settled = settled.only(keep)
    encode_labels(settled)
    return settled, keep


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
