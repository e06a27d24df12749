"""Changes of single rows: applied, recorded in a revision, counted."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.db.models import Count

from apps.datasets.errors import BeingChanged
from apps.datasets.models import Change, Dataset, Example, Revision, TaskKind
from apps.runtime.bulk_insert import bulk_insert
from apps.similarity.text_key import text_key
from apps.work import services as work

CHUNK_ROWS = 500  # per statement and transaction: SQLite's older limit is 999 parameters
T = TypeVar("T")

ROW_FIELDS = ("text", "label", "split", "origin", "meta")


@dataclass(frozen=True, slots=True)
class Step:
    """A change of one row: `before` None adds it, `after` None removes it."""

    index: int
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    @property
    def inverse(self) -> "Step":
        return Step(self.index, self.after, self.before)


@dataclass(slots=True)
class CountChanges:
    """Changes of a dataset's counts, added up over steps."""

    rows: int = 0
    """Rows that the steps concern."""
    added: int = 0
    removed: int = 0
    last: int = -1
    labels: Counter[str] = field(default_factory=Counter)
    splits: Counter[str] = field(default_factory=Counter)

    @property
    def changes_row_count(self) -> bool:
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


def lock_dataset(dataset: Dataset) -> Dataset:
    """Return the dataset as it is now; other changes wait until this transaction is over.

    Read what a change is based on after this, never before: two changes at once would both record
    the state before either.

    Raises:
        BeingChanged: a change of many rows is in progress.
    """
    found = Dataset.objects.select_for_update().get(pk=dataset.pk)
    change = work.find(TaskKind.CHANGE, found.pk)
    if change is not None and change.is_active:
        raise BeingChanged
    return found


def record_steps(dataset: Dataset, revision: Revision, steps: Sequence[Step]) -> None:
    """Apply steps and record them in a revision."""
    bulk_insert(
        Change,
        ("revision", "index", "before", "after"),
        ((revision.pk, s.index, s.before, s.after) for s in steps),
    )
    apply_steps(dataset, steps)


def finish_revision(
    dataset: Dataset, revision: Revision, counts: CountChanges, duplicates: int | None
) -> None:
    """Make the revision the dataset's version.

    Args:
        dataset: locked.
        duplicates: the new count; None if no row was added or removed.
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
    # An earlier failure is no longer the last change.
    work.forget_failure(TaskKind.CHANGE, dataset.pk)


def apply_steps(dataset: Dataset, steps: Sequence[Step]) -> None:
    """Change the rows, with as few statements as possible."""
    rows = Example.objects.filter(dataset=dataset)
    removed = [step.index for step in steps if step.after is None]
    for some in chunks(removed):
        rows.filter(index__in=some).delete()
    added = [step for step in steps if step.before is None and step.after is not None]
    Example.objects.bulk_create([_example(dataset, step) for step in added], batch_size=2_000)
    alike: dict[tuple[tuple[str, Any], ...], list[int]] = defaultdict(list)
    for step in steps:
        if step.before is not None and step.after is not None:
            alike[tuple(step.after.items())].append(step.index)
    for values, indices in alike.items():
        for some in chunks(indices):
            rows.filter(index__in=some).update(**dict(values))


def row_values(dataset: Dataset, indices: Iterable[int], *fields: str) -> list[tuple[Any, ...]]:
    """Return the index and these fields of some rows, in order."""
    found: list[tuple[Any, ...]] = []
    rows = Example.objects.filter(dataset=dataset).order_by("index")
    for some in chunks(list(indices)):
        found += rows.filter(index__in=some).values_list("index", *fields)
    return found


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + CHUNK_ROWS] for start in range(0, len(items), CHUNK_ROWS))


def _example(dataset: Dataset, step: Step) -> Example:
    assert step.after is not None
    return Example(
        dataset=dataset,
        index=step.index,
        text_key=text_key(step.after["text"]),
        **step.after,
    )


def count_duplicates(dataset: Dataset) -> int:
    """Count the rows with the text of an earlier row."""
    found = dataset.examples.order_by().aggregate(
        rows=Count("pk"), texts=Count("text_key", distinct=True)
    )
    return int(found["rows"] - found["texts"])
