"""The rows of a run, read from its datasets and divided into training and test rows."""

import numpy as np
from django.db.models import Q
from numpy.typing import NDArray

from apps.classifiers.errors import CannotTrain
from apps.classifiers.models import Classifier
from apps.classifiers.training.label_quality.label_rules import LabelOptions, check_dataset
from apps.classifiers.training.rows import TrainingRows
from apps.datasets.models import Change, Dataset, Split
from apps.datasets.services import BeingChanged, hold_out, make_split

HELD_OUT = 0.2
# How the revisions of a run's own test rows are called, now and in earlier versions.
HELD_OUT_ENDINGS = ("held out for testing", "were set aside as test")


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
        rows = _with_test_set(dataset, rows, classifier.test_dataset)
    elif (_marked(rows, Split.TEST) & rows.labelled).any():
        _judge_by_test_rows(rows)
    elif (_marked(rows, Split.VALIDATION) & rows.labelled).any():
        _judge_by_validation_rows(rows)
    else:
        rows = _hold_out(dataset, rows, seed)
    rows.test &= rows.labelled
    return rows


def _with_test_set(dataset: Dataset, rows: TrainingRows, test_set: Dataset) -> TrainingRows:
    rows = _without_own_test(dataset, rows)
    rows.add(test_set, source=1)
    rows.test = np.asarray(rows.sources) == 1
    rows.test_source = f"the dataset “{test_set.name}”"
    return rows


def _judge_by_test_rows(rows: TrainingRows) -> None:
    rows.test = _marked(rows, Split.TEST)
    rows.test_source = "rows marked as test"
    validation = int((_marked(rows, Split.VALIDATION) & rows.labelled).sum())
    if validation:
        rows.notes.append(
            f"{validation:,} validation rows are trained on: the test rows are enough to judge."
        )


def _judge_by_validation_rows(rows: TrainingRows) -> None:
    rows.test = _marked(rows, Split.VALIDATION)
    rows.test_source = "the rows the dataset marks as validation"
    rows.notes.append(
        "The dataset has no test rows: its validation rows are the test set of this run, and "
        "none of them is trained on."
    )


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
    held_out = Q()
    for ending in HELD_OUT_ENDINGS:
        held_out |= Q(revision__what__endswith=ending)
    changes = Change.objects.filter(
        held_out, revision__dataset=dataset, revision__by=None, revision__undone=False
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
        "The dataset had no test rows. 20% of each label is now marked as test in it, and later "
        "runs are tested on it too."
    )
    return again


def _marked(rows: TrainingRows, split: Split) -> NDArray[np.bool_]:
    return np.asarray([given == split for given in rows.splits], dtype=np.bool_)
