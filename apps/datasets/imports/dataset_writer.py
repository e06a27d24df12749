"""Writes rows into a new dataset: checked, counted, a batch at a time."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from apps.datasets.errors import NothingUsable, TooManyLabels
from apps.datasets.models import Dataset, Example, Rejection
from apps.datasets.rows.steps import count_duplicates
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
# A file whose every row is wrong has one reason, not a million.
MAX_REJECTIONS = 100_000

COLUMNS = ("dataset", "index", "text", "label", "split", "origin", "meta", "text_key")
Values = tuple[int, int, str, str, str, str, Any, int]
Numbered = tuple[int, ExampleRow | RejectedRow]


class DatasetWriter:
    """Checks, counts and writes rows of a new dataset. The caller opens transactions."""

    def __init__(
        self,
        dataset: Dataset,
        *,
        mapping: ColumnMapping = DEFAULT_MAPPING,
        unlabelled: bool = False,
    ) -> None:
        self.dataset = dataset
        self.mapping = mapping
        self.unlabelled = unlabelled
        self.labels: Counter[str] = Counter()
        self.splits: Counter[str] = Counter()
        self.rejected = 0
        self.cleaned = 0
        self._next = 0

    def write(self, batch: Sequence[Numbered], *, file: str = "", split: str = "") -> None:
        """Write a batch.

        Args:
            file: its name, if rows come from several files.
            split: for rows without a split of their own.

        Raises:
            TooManyLabels: more labels than a dataset may have.
            NothingUsable: `MAX_REJECTIONS` rows were rejected and none was accepted.
        """
        examples: list[Values] = []
        rejections: list[Rejection] = []
        for number, given in batch:
            row = given
            if isinstance(row, ExampleRow):
                row = check_row(row, number, self.mapping, unlabelled=self.unlabelled)
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
        if len(self.labels) > MAX_LABELS + 1:  # the empty label does not count
            raise TooManyLabels(self.mapping.label or "label", filter(None, self.labels))
        if not self.labels and self.rejected > MAX_REJECTIONS:  # the rest would be no better
            raise self._nothing_usable()

    def finish(self, notes: Sequence[str] = ()) -> None:
        """Save the dataset with its counts.

        Raises:
            NothingUsable: no row was accepted.
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


def batches(rows: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    """Yield rows in batches of bounded number and memory."""
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
