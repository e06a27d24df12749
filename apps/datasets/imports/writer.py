"""Rows into a dataset: checked, counted, written a batch at a time."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import models, transaction
from django.db.models import Count

from apps.datasets.models import (
    Change,
    Dataset,
    DatasetState,
    Example,
    NearCopy,
    QueueItem,
    Rejection,
)
from apps.files import (
    DEFAULT_MAPPING,
    MAX_LABELS,
    ColumnMapping,
    ExampleRow,
    RejectedRow,
    check_row,
)
from apps.runtime.bulk_insert import bulk_insert
from apps.similarity.text_key import text_key

BATCH_ROWS = 1_000  # one transaction: others write meanwhile
BATCH_CHARACTERS = 4_000_000
# What is deleted before its dataset is: there may be millions of them. A piece is a transaction.
PARTS: dict[type[models.Model], str] = {
    **dict.fromkeys((Example, Rejection, NearCopy), "dataset"),
    Change: "revision__dataset",
    QueueItem: "queue__dataset",
}
PIECE_ROWS = 900  # SQLite's older limit is 999 parameters
# A file whose every row is wrong has one reason, not a million.
MAX_REJECTIONS = 100_000

COLUMNS = ("dataset", "index", "text", "label", "split", "origin", "meta", "text_key")
Values = tuple[int, int, str, str, str, str, Any, int]
Numbered = tuple[int, ExampleRow | RejectedRow]
T = TypeVar("T")


class NothingUsable(Exception):
    """No dataset comes of these rows. `rejected` holds the first of them with their reasons."""

    def __init__(
        self, rejected: Sequence[RejectedRow], count: int, message: str | None = None
    ) -> None:
        found = "; ".join(
            f"row {row.row}{f', {row.column}' if row.column else ''}: {row.reason}"
            for row in rejected[:3]
        )
        super().__init__(
            message
            or (
                f"All {count:,} rows were rejected ({found})"
                if rejected
                else "No rows below the header."
            )
        )
        self.rejected = rejected


class TooManyLabels(NothingUsable):
    """So many different labels that the column must hold something else."""

    def __init__(self, column: str, labels: Iterable[str]) -> None:
        some = ", ".join(f"“{label[:40]}”" for label in islice(labels, 3))
        super().__init__(
            [],
            0,
            f"The column “{column}” has more than {MAX_LABELS:,} different labels ({some}, …). "
            "Is another column the label?",
        )


class Intake:
    """Writes into one dataset and counts what it writes. The caller has the transactions."""

    def __init__(
        self, dataset: Dataset, *, names: ColumnMapping = DEFAULT_MAPPING, unlabelled: bool = False
    ) -> None:
        self.dataset = dataset
        self.names = names
        self.unlabelled = unlabelled
        self.labels: Counter[str] = Counter()
        self.splits: Counter[str] = Counter()
        self.rejected = 0
        self.cleaned = 0
        self._next = 0

    def write(self, batch: Sequence[Numbered], *, file: str = "", split: str = "") -> None:
        """Writes a batch.

        Args:
            file: its name, where rows come from several.
            split: that of rows which bring none.

        Raises:
            TooManyLabels: more than can be told apart.
            NothingUsable: so many rows were rejected, and none was taken.
        """
        examples: list[Values] = []
        rejections: list[Rejection] = []
        for number, given in batch:
            row = given
            if isinstance(row, ExampleRow):
                row = check_row(row, number, self.names, unlabelled=self.unlabelled)
            if isinstance(row, RejectedRow):
                rejections.append(self._rejection(row, file))
                continue
            assert isinstance(given, ExampleRow)
            self.cleaned += given.label != row.label
            self.labels[row.label] += 1
            self.splits[row.split or split] += 1
            examples.append(self._values(row, file, split))
        kept = max(0, MAX_REJECTIONS - self.rejected)
        bulk_insert(Example, COLUMNS, examples)
        Rejection.objects.bulk_create(rejections[:kept])
        self.rejected += len(rejections)
        if len(self.labels) > MAX_LABELS + 1:  # "no label" is none
            raise TooManyLabels(self.names.label or "label", filter(None, self.labels))
        if not self.labels and self.rejected > MAX_REJECTIONS:  # the rest would be no better
            raise self._nothing_usable()

    def finish(self, notes: Sequence[str] = ()) -> None:
        """Writes the counts into the dataset and saves it.

        Raises:
            NothingUsable: no row is left.
        """
        dataset = self.dataset
        if not self.labels:
            raise self._nothing_usable()
        dataset.rows = dataset.next_index = self._next
        dataset.unlabelled = self.labels.pop("", 0)
        dataset.label_counts = dict(self.labels.most_common())
        dataset.split_counts = {split: count for split, count in self.splits.items() if split}
        dataset.rejected_count = self.rejected
        dataset.duplicates = count_duplicates(dataset)
        dataset.notes = list(notes)
        if self.cleaned:
            labels = "label" if self.cleaned == 1 else "labels"
            dataset.notes.append(f"Extra spaces removed from {self.cleaned:,} {labels}.")
        if self.rejected > MAX_REJECTIONS:
            dataset.notes.append(
                f"Showing the first {MAX_REJECTIONS:,} of {self.rejected:,} rejected rows."
            )
        dataset.save()

    def _nothing_usable(self) -> NothingUsable:
        first = self.dataset.rejections.all()[:20]
        return NothingUsable([RejectedRow(r.row, r.column, r.reason) for r in first], self.rejected)

    def _values(self, row: ExampleRow, file: str, split: str) -> Values:
        origin = f"{file[: 58 - len(row.origin)]}, {row.origin}" if file else row.origin
        split = row.split or split
        key = text_key(row.text)
        place = self._next
        self._next += 1
        return (
            self.dataset.pk,
            place,
            row.text,
            row.label,
            split,
            origin[:60],
            row.meta or {},
            key,
        )

    def _rejection(self, row: RejectedRow, file: str) -> Rejection:
        return Rejection(
            dataset=self.dataset,
            file=file,
            row=row.row,
            column=row.column[:200],
            reason=row.reason[:300],
        )


def count_duplicates(dataset: Dataset) -> int:
    found = dataset.examples.order_by().aggregate(
        rows=Count("pk"), texts=Count("text_key", distinct=True)
    )
    return int(found["rows"] - found["texts"])


def batches(rows: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    """Rows in batches that are small in number and in memory."""
    batch: list[Numbered] = []
    characters = 0
    for number, row in rows:
        batch.append((number, row))
        characters += len(row.text) if isinstance(row, ExampleRow) else 0
        if len(batch) == BATCH_ROWS or characters > BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def create_dataset(
    *,
    owner: User,
    name: str,
    rows: Iterable[ExampleRow | RejectedRow],
    origin: str,
    notes: Sequence[str] = (),
    unlabelled: bool = False,
) -> Dataset:
    """A dataset of these rows, all of it or nothing. Rows are taken one by one, in order, and
    written a batch in a transaction; nobody sees the dataset before the last one is in.

    Every row is checked (see `files.check_row`): one with an empty text or label, say, is kept as a
    rejection with its number (counted from 1, unless the source numbered it) and reason.

    Raises:
        NothingUsable: no row is left, or there are too many labels.
    """
    dataset = Dataset.objects.create(
        owner=owner, name=name[:200], origin=origin[:300], state=DatasetState.IMPORTING
    )
    intake = Intake(dataset, unlabelled=unlabelled)
    extra: dict[str, None] = {}
    try:
        for batch in batches(enumerate(rows, start=1)):
            with transaction.atomic():
                intake.write(batch)
            for _, row in batch:
                if isinstance(row, ExampleRow) and row.meta:
                    extra |= dict.fromkeys(row.meta)
        dataset.extra_columns = list(extra)
        dataset.state = DatasetState.READY
        with transaction.atomic():
            intake.finish(notes)
    except BaseException:
        remove_in_pieces(dataset)
        raise
    return dataset


def remove_in_pieces(dataset: Dataset, tick: Callable[[], None] = lambda: None) -> None:
    """Deletes a dataset of any size without holding the database for long."""
    for model, of in PARTS.items():
        rows: models.QuerySet[Any] = model._default_manager.filter(**{of: dataset}).order_by("pk")
        while keys := list(rows.values_list("pk", flat=True)[:PIECE_ROWS]):
            model._default_manager.filter(pk__in=keys).delete()
            tick()
    dataset.delete()
