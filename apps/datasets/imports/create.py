"""Makes a dataset of rows that another room has at hand."""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from django.contrib.auth.models import User
from django.db import transaction

from apps.datasets.imports.dataset_writer import DatasetWriter, batches
from apps.datasets.models import Dataset, DatasetState, TaskKind
from apps.datasets.rows.removal import finish_removal
from apps.files import ExampleRow, RejectedRow
from apps.work import services as work
from apps.work.errors import LeaseLost
from apps.work.services import HeldTask


def create_dataset(
    *,
    owner: User,
    name: str,
    rows: Iterable[ExampleRow | RejectedRow],
    origin: str,
    notes: Sequence[str] = (),
    unlabelled: bool = False,
) -> Dataset:
    """Create a dataset of these rows, all of it or nothing.

    Each batch of rows is a transaction; the dataset is hidden until the last row is in. Every row
    is checked (see `files.check_row`): one with an empty text or label, say, is kept as a
    rejection with its number (counted from 1, unless the source numbered it) and reason.

    Raises:
        NothingUsable: no row can be used, or there are too many labels.
    """
    with transaction.atomic():
        dataset = Dataset.objects.create(
            owner=owner, name=name[:200], origin=origin[:300], state=DatasetState.IMPORTING
        )
        # Should this process be killed, a worker removes what it wrote.
        held = work.start_here(TaskKind.REMOVAL, dataset.pk, owner=owner)
    assert held is not None  # the dataset is new
    with held:
        try:
            _write(dataset, rows, held, notes, unlabelled)
        except BaseException:
            with suppress(LeaseLost):
                finish_removal(held)
            raise
    return dataset


def _write(
    dataset: Dataset,
    rows: Iterable[ExampleRow | RejectedRow],
    held: HeldTask,
    notes: Sequence[str],
    unlabelled: bool,
) -> None:
    writer = DatasetWriter(dataset, unlabelled=unlabelled)
    extra: dict[str, None] = {}
    for batch in batches(enumerate(rows, start=1)):
        with held.fence():
            writer.write(batch)
        for _, row in batch:
            if isinstance(row, ExampleRow) and row.meta:
                extra |= dict.fromkeys(row.meta)
    dataset.extra_columns = list(extra)
    dataset.state = DatasetState.READY
    with held.fence():
        writer.finish(notes)
        held.task.delete()
