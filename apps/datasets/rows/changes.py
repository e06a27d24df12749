"""What happens to rows, step by step: done, written down, counted."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from apps.datasets.models import BulkChange, Change, Dataset, Example, Revision
from apps.runtime.bulk_insert import bulk_insert
from apps.similarity.text_key import text_key

FEW = 500  # rows a statement, and a transaction: SQLite's older limit is 999 parameters
T = TypeVar("T")

FULL = ("text", "label", "split", "origin", "meta")


class BeingChanged(ValueError):
    """Many rows of the dataset are being changed; nobody else may until that is done."""

    def __init__(self) -> None:
        super().__init__(
            "Many rows of this dataset are being changed. Try again when that is done."
        )


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to one row: `before` None adds it, `after` None removes it."""

    index: int
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    @property
    def back(self) -> "Step":
        return Step(self.index, self.after, self.before)


@dataclass(slots=True)
class Counts:
    """What steps change in a dataset's counts."""

    rows: int = 0
    """How many rows they concern."""
    added: int = 0
    removed: int = 0
    last: int = -1
    labels: Counter[str] = field(default_factory=Counter)
    splits: Counter[str] = field(default_factory=Counter)

    @property
    def moved(self) -> bool:
        return bool(self.added or self.removed)

    def add(self, steps: Sequence[Step]) -> None:
        self.rows += len(steps)
        for step in steps:
            self.added += step.before is None
            self.removed += step.after is None
            self.last = max(self.last, step.index)
            for values, by in ((step.before, -1), (step.after, 1)):
                for counter, name in ((self.labels, "label"), (self.splits, "split")):
                    if values is not None and name in values:
                        counter[values[name]] += by


def locked(dataset: Dataset) -> Dataset:
    """The dataset as it is now; other changes wait until this transaction is over.

    What a change is worked out from is read after this, never before: two of them at once would
    both write down what was there before either.

    Raises:
        BeingChanged: many rows are being changed.
    """
    found = Dataset.objects.select_for_update().get(pk=dataset.pk)
    if BulkChange.objects.filter(dataset=found, error="").exists():
        raise BeingChanged
    return found


def write(dataset: Dataset, revision: Revision, steps: Sequence[Step]) -> None:
    """Does the steps and writes them down."""
    bulk_insert(
        Change,
        ("revision", "index", "before", "after"),
        ((revision.pk, s.index, s.before, s.after) for s in steps),
    )
    apply(dataset, steps)


def finish(dataset: Dataset, revision: Revision, counts: Counts, duplicates: int | None) -> None:
    """Makes the revision the dataset's version.

    Args:
        dataset: locked.
        duplicates: how many there are now; None where no row came or went.
    """
    labels = Counter({"": dataset.unlabelled}) + Counter(dataset.label_counts)
    splits = Counter(dataset.split_counts)
    labels.update(counts.labels)
    splits.update(counts.splits)
    dataset.version = revision.number
    dataset.rows += counts.added - counts.removed
    dataset.unlabelled = labels.pop("", 0)
    dataset.label_counts = {name: n for name, n in labels.most_common() if n > 0}
    dataset.split_counts = {name: n for name, n in splits.items() if name and n > 0}
    dataset.next_index = max(dataset.next_index, counts.last + 1)
    if duplicates is not None:
        dataset.duplicates = duplicates
    dataset.save()
    if not revision.complete:
        revision.rows = counts.rows
        revision.complete = True
        revision.save(update_fields=["rows", "complete"])
    if revision.undoes_id is not None:
        Revision.objects.filter(pk=revision.undoes_id).update(undone=True)
    # What failed before is no longer the last change.
    BulkChange.objects.filter(dataset=dataset).exclude(error="").delete()


def apply(dataset: Dataset, steps: Sequence[Step]) -> None:
    rows = Example.objects.filter(dataset=dataset)
    removed = [step.index for step in steps if step.after is None]
    for some in pieces(removed):
        rows.filter(index__in=some).delete()
    added = [step for step in steps if step.before is None and step.after is not None]
    Example.objects.bulk_create([_example(dataset, step) for step in added], batch_size=2_000)
    alike: dict[tuple[tuple[str, Any], ...], list[int]] = defaultdict(list)
    for step in steps:
        if step.before is not None and step.after is not None:
            alike[tuple(step.after.items())].append(step.index)
    for values, indices in alike.items():
        for some in pieces(indices):
            rows.filter(index__in=some).update(**dict(values))


def values(dataset: Dataset, indices: Iterable[int], *fields: str) -> list[tuple[Any, ...]]:
    """The place and these fields of some rows, in order."""
    found: list[tuple[Any, ...]] = []
    rows = Example.objects.filter(dataset=dataset).order_by("index")
    for some in pieces(list(indices)):
        found += rows.filter(index__in=some).values_list("index", *fields)
    return found


def pieces(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + FEW] for start in range(0, len(items), FEW))


def _example(dataset: Dataset, step: Step) -> Example:
    assert step.after is not None
    return Example(
        dataset=dataset,
        index=step.index,
        text_key=text_key(step.after["text"]),
        **step.after,
    )
