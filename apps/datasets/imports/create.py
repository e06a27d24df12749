"""Makes a dataset of rows that another room has at hand."""

from collections.abc import Iterable, Sequence

from django.contrib.auth.models import User
from django.db import transaction

from apps.datasets.imports.dataset_writer import DatasetWriter, batches
from apps.datasets.models import Dataset, DatasetState
from apps.datasets.rows.removal import remove_in_pieces
from apps.files import ExampleRow, RejectedRow


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
    dataset = Dataset.objects.create(
        owner=owner, name=name[:200], origin=origin[:300], state=DatasetState.IMPORTING
    )
    writer = DatasetWriter(dataset, unlabelled=unlabelled)
    extra: dict[str, None] = {}
    try:
        for batch in batches(enumerate(rows, start=1)):
            with transaction.atomic():
                writer.write(batch)
            for _, row in batch:
                if isinstance(row, ExampleRow) and row.meta:
                    extra |= dict.fromkeys(row.meta)
        dataset.extra_columns = list(extra)
        dataset.state = DatasetState.READY
        with transaction.atomic():
            writer.finish(notes)
    except BaseException:
        remove_in_pieces(dataset)
        raise
    return dataset
