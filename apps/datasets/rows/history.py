"""The rows of any version of a dataset: the current rows, with later changes reverted."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apps.datasets.errors import SnapshotGone
from apps.datasets.models import Change, Dataset, DatasetState

CHUNK_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class SnapshotRef:
    """A version of a dataset. Its rows can be read again as long as the dataset is there."""

    dataset_id: int
    version: int
    rows: int
    hash: str
    """SHA-256 of every row's place, text, label and split."""


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    index: int
    text: str
    label: str
    """Empty while nobody has given one."""
    split: str
    """"", "train", "validation" or "test"."""
    origin: str


def snapshot(dataset: Dataset) -> SnapshotRef:
    """Return the dataset's current version, with the hash of its rows. Reads all of them.

    Raises:
        SnapshotGone: the dataset was deleted.
    """
    version = Dataset.objects.filter(pk=dataset.pk).values_list("version", flat=True).first()
    if version is None:
        raise SnapshotGone("The dataset was deleted.")
    digest = hashlib.sha256()
    rows = 0
    for row in rows_at(dataset.pk, version):
        digest.update(json.dumps([row.index, row.text, row.label, row.split]).encode())
        rows += 1
    return SnapshotRef(dataset.pk, version, rows, digest.hexdigest())


def read_snapshot(ref: SnapshotRef) -> Iterator[SnapshotRow]:
    """Yield the rows of that version in order, however the dataset has changed since.

    Raises:
        SnapshotGone: the dataset was deleted.
    """
    return rows_at(ref.dataset_id, ref.version)


def rows_at(dataset_id: int, version: int) -> Iterator[SnapshotRow]:
    """Yield the rows of a dataset as of a version, a chunk at a time.

    Raises:
        SnapshotGone: the dataset was deleted.
    """
    dataset = Dataset.objects.filter(pk=dataset_id, state=DatasetState.READY).first()
    if dataset is None:
        raise SnapshotGone("The dataset was deleted.")
    for start in range(0, dataset.next_index, CHUNK_ROWS):
        yield from _chunk(dataset, version, start)


def _chunk(dataset: Dataset, version: int, start: int) -> Iterator[SnapshotRow]:
    inside = {"index__gte": start, "index__lt": start + CHUNK_ROWS}
    fields = ("text", "label", "split", "origin")
    # Rows before changes: a revision that comes in between is then found and taken back.
    rows: dict[int, dict[str, Any] | None] = {
        index: dict(zip(fields, values, strict=True))
        for index, *values in dataset.examples.filter(**inside).values_list("index", *fields)
    }
    later = Change.objects.filter(
        revision__dataset=dataset, revision__number__gt=version, **inside
    ).order_by("-revision__number")
    for index, before, after in later.values_list("index", "before", "after").iterator():
        now = rows.get(index)
        rows[index] = before if before is None or after is None or now is None else now | before
    for index in sorted(rows):
        row = rows[index]
        if row is not None:
            yield SnapshotRow(index, *(row[name] for name in fields))
