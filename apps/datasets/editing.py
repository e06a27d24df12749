"""Changing a dataset. Everything goes through a revision: it can be undone, and read again."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from apps.datasets import formats, splitting
from apps.datasets.formats import MAX_LABELS, ExampleRow, RejectedRow
from apps.datasets.intake import count_duplicates
from apps.datasets.models import Change, Dataset, Example, Revision, Split
from apps.datasets.writing import insert

FEW = 500  # rows a statement: SQLite's older limit is 999 parameters
TEST_SHARE = 0.2
T = TypeVar("T")

FULL = ("text", "label", "split", "origin", "meta")


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to one row: `before` None adds it, `after` None removes it."""

    index: int
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    @property
    def back(self) -> "Step":
        return Step(self.index, self.after, self.before)


def relabel(example: Example, label: str, *, by: User | None = None) -> Example:
    """Gives one example another label; an empty one takes it away.

    Raises:
        ValueError: the label is too long, or one too many; the message says so.
    """
    dataset = example.dataset
    relabel_rows(dataset, [example.index], label, by=by)
    example.refresh_from_db()
    dataset.refresh_from_db()
    return example


@transaction.atomic
def relabel_rows(
    dataset: Dataset, indices: Sequence[int], label: str, *, by: User | None = None
) -> Revision | None:
    """Gives some rows one label. None where all of them have it already.

    Raises:
        ValueError: the label is too long, or one too many; the message says so.
    """
    label = _good_label(dataset, label)
    steps = [
        Step(index, {"label": old}, {"label": label})
        for index, old in _values(dataset, indices, "label")
        if old != label
    ]
    if len(steps) == 1:
        assert steps[0].before is not None
        old = steps[0].before["label"]
        what = f"Row {steps[0].index + 1}: {_quoted(old)} became {_quoted(label)}"
    else:
        what = f"{_rows(len(steps))} became {_quoted(label)}"
    return _revise(dataset, what, steps, by=by)


@transaction.atomic
def merge_labels(
    dataset: Dataset, labels: Sequence[str], into: str, *, by: User | None = None
) -> Revision | None:
    """Makes one label of several.

    Raises:
        ValueError: the label is empty or too long.
    """
    if not into.strip():
        raise ValueError("Say which label the others become.")
    into = _good_label(dataset, into)
    old = [label for label in dict.fromkeys(labels) if label != into]
    found = dataset.examples.filter(label__in=old).order_by("index").values_list("index", "label")
    steps = [Step(index, {"label": was}, {"label": into}) for index, was in found.iterator()]
    names = ", ".join(map(_quoted, old[:3])) + (f" and {len(old) - 3} more" if len(old) > 3 else "")
    return _revise(dataset, f"{names} became {_quoted(into)} ({_rows(len(steps))})", steps, by=by)


@transaction.atomic
def delete_rows(
    dataset: Dataset, indices: Sequence[int], *, by: User | None = None
) -> Revision | None:
    steps = [
        Step(index, dict(zip(FULL, values, strict=True)), None)
        for index, *values in _values(dataset, indices, *FULL)
    ]
    if len(steps) == 1:
        what = f"Row {steps[0].index + 1} was deleted"
    else:
        what = f"{_rows(len(steps))} were deleted"
    return _revise(dataset, what, steps, by=by)


@transaction.atomic
def delete_duplicates(dataset: Dataset, *, by: User | None = None) -> Revision | None:
    """Removes every row whose text and label were there before; where the split says so, a test row
    stays and its copies in training go."""
    seen: set[tuple[int, str]] = set()
    gone = []
    order = dataset.examples.order_by("index").values_list("index", "text_key", "label", "split")
    for wanted in (True, False):  # test rows first: they must not lose to a training row
        for index, key, label, split in order.iterator():
            if (split == Split.TEST) == wanted:
                if (key, label) in seen:
                    gone.append(index)
                seen.add((key, label))
    steps = [
        Step(index, dict(zip(FULL, values, strict=True)), None)
        for index, *values in _values(dataset, sorted(gone), *FULL)
    ]
    return _revise(dataset, f"{_rows(len(steps))} with a repeated text were deleted", steps, by=by)


@transaction.atomic
def add_rows(
    dataset: Dataset, rows: Sequence[ExampleRow], *, by: User | None = None
) -> tuple[Revision | None, list[RejectedRow]]:
    """Adds rows at the end; those that cannot be used are given back with their number and reason.

    Raises:
        ValueError: there would be too many labels.
    """
    dataset = _locked(dataset)
    rejected: list[RejectedRow] = []
    steps: list[Step] = []
    for number, row in enumerate(rows, start=1):
        good = formats.checked(row, number, unlabelled=True)
        if isinstance(good, RejectedRow):
            rejected.append(good)
            continue
        values = (good.text, good.label, good.split or "", good.origin or "added here", good.meta)
        after = dict(zip(FULL, values, strict=True))
        steps.append(Step(dataset.next_index + len(steps), None, after))
    labels = {step.after["label"] for step in steps if step.after} - {""}
    _check_label_count(dataset, labels)
    added = "1 row was added" if len(steps) == 1 else f"{_rows(len(steps))} were added"
    return _revise(dataset, added, steps, by=by), rejected


@transaction.atomic
def set_split(
    dataset: Dataset, indices: Sequence[int], split: str, *, by: User | None = None
) -> Revision | None:
    """Raises:
    ValueError: there is no such split.
    """
    if split not in Split.values:
        raise ValueError(f"“{split[:40]}” is no split. Use train, validation or test.")
    steps = [
        Step(index, {"split": old}, {"split": split})
        for index, old in _values(dataset, indices, "split")
        if old != split
    ]
    where = f"were marked as {split}" if split else "are in no split any more"
    return _revise(dataset, f"{_rows(len(steps))} {where}", steps, by=by)


@transaction.atomic
def make_split(
    dataset: Dataset, *, share: float = TEST_SHARE, seed: int = 0, by: User | None = None
) -> Revision | None:
    """Marks about `share` of each label's texts as the test split, and all other rows as training.

    Rows with the same text stay on one side; a label with one text only stays in training;
    unlabelled rows are in neither.

    Raises:
        ValueError: no label has two different texts.
    """
    rows = list(
        dataset.examples.exclude(label="")
        .order_by("index")
        .values_list("index", "label", "text_key", "split")
    )
    test = splitting.hold_out(
        [label for _, label, _, _ in rows], [key for _, _, key, _ in rows], share=share, seed=seed
    )
    if not test.any():
        raise ValueError("No label has two different texts, so none can be held back.")
    steps = []
    for (index, _, _, old), held in zip(rows, test.tolist(), strict=True):
        new = Split.TEST.value if held else Split.TRAIN.value
        if old != new:
            steps.append(Step(index, {"split": old}, {"split": new}))
    return _revise(dataset, f"{int(test.sum()):,} rows were set aside as test", steps, by=by)


@transaction.atomic
def undo(dataset: Dataset, *, by: User | None = None) -> Revision | None:
    """Takes the last thing back that was not taken back before; None where nothing is left."""
    dataset = _locked(dataset)
    last = dataset.revisions.filter(undone=False, undoes=None).first()
    if last is None:
        return None
    changes = last.changes.order_by("index").values_list("index", "before", "after")
    steps = [Step(*change).back for change in changes]
    revision = _revise(dataset, f"Undone: {last.what}", steps, by=by, undoes=last)
    Revision.objects.filter(pk=last.pk).update(undone=True)
    return revision


def can_undo(dataset: Dataset) -> Revision | None:
    """What Undo would take back."""
    return dataset.revisions.filter(undone=False, undoes=None).first()


# --- How it is done -----------------------------------------------------------


def _revise(
    dataset: Dataset,
    what: str,
    steps: Sequence[Step],
    *,
    by: User | None,
    undoes: Revision | None = None,
) -> Revision | None:
    """Does the steps and writes them down. None, and nothing done, where there are none."""
    if not steps:
        return None
    locked = _locked(dataset)
    revision = Revision.objects.create(
        dataset=locked,
        number=locked.version + 1,
        what=what[:300],
        by=by,
        rows=len(steps),
        undoes=undoes,
    )
    insert(
        Change,
        ("revision", "index", "before", "after"),
        ((revision.pk, s.index, _as_json(s.before), _as_json(s.after)) for s in steps),
    )
    _apply(locked, steps)
    locked.version = revision.number
    _recount(locked, steps)
    locked.save()
    dataset.refresh_from_db()
    return revision


def _as_json(values: dict[str, Any] | None) -> str | None:
    return None if values is None else json.dumps(values)


def _apply(dataset: Dataset, steps: Sequence[Step]) -> None:
    rows = Example.objects.filter(dataset=dataset)
    removed = [step.index for step in steps if step.after is None]
    for some in _pieces(removed):
        rows.filter(index__in=some).delete()
    added = [step for step in steps if step.before is None and step.after is not None]
    Example.objects.bulk_create(
        [_example(dataset, step) for step in added],
        batch_size=2_000,
    )
    alike: dict[tuple[tuple[str, Any], ...], list[int]] = defaultdict(list)
    for step in steps:
        if step.before is not None and step.after is not None:
            alike[tuple(step.after.items())].append(step.index)
    for values, indices in alike.items():
        for some in _pieces(indices):
            rows.filter(index__in=some).update(**dict(values))


def _example(dataset: Dataset, step: Step) -> Example:
    assert step.after is not None
    return Example(
        dataset=dataset,
        index=step.index,
        text_key=formats.text_key(step.after["text"]),
        **step.after,
    )


def _recount(dataset: Dataset, steps: Sequence[Step]) -> None:
    labels = Counter({"": dataset.unlabelled}) + Counter(dataset.label_counts)
    splits = Counter(dataset.split_counts)
    for counter, field in ((labels, "label"), (splits, "split")):
        for step in steps:
            if step.before is not None and field in step.before:
                counter[step.before[field]] -= 1
            if step.after is not None and field in step.after:
                counter[step.after[field]] += 1
    added = sum(step.before is None for step in steps)
    removed = sum(step.after is None for step in steps)
    dataset.rows += added - removed
    dataset.unlabelled = labels.pop("", 0)
    dataset.label_counts = {name: n for name, n in labels.most_common() if n > 0}
    dataset.split_counts = {name: n for name, n in splits.items() if name and n > 0}
    if added or removed:
        dataset.next_index = max(dataset.next_index, max(step.index for step in steps) + 1)
        dataset.duplicates = count_duplicates(dataset)


def _locked(dataset: Dataset) -> Dataset:
    """The dataset as it is now; other changes wait until this transaction is over."""
    return Dataset.objects.select_for_update().get(pk=dataset.pk)


def _good_label(dataset: Dataset, label: str) -> str:
    row = formats.checked(ExampleRow("a text", label), 1, unlabelled=True)
    if isinstance(row, RejectedRow):
        raise ValueError(row.reason)
    _check_label_count(dataset, {row.label} - {""})
    return row.label


def _check_label_count(dataset: Dataset, labels: set[str]) -> None:
    if len(labels | set(dataset.label_counts)) > MAX_LABELS:
        raise ValueError(f"A dataset has at most {MAX_LABELS:,} different labels.")


def _values(dataset: Dataset, indices: Sequence[int], *fields: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    rows: QuerySet[Example] = dataset.examples.order_by("index")
    for some in _pieces(indices):
        found += rows.filter(index__in=some).values_list("index", *fields)
    return found


def _pieces(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + FEW] for start in range(0, len(items), FEW))


def _quoted(label: str) -> str:
    return f"“{label}”" if label else "unlabelled"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
