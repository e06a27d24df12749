"""A dataset as a download, a piece at a time. No connection is held between pieces."""

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from apps.datasets.models import Dataset, Example, Rejection
from apps.files import CsvWriter, create_writer
from apps.runtime.async_db import in_db

EXPORT_ROWS = 1_000
PARQUET_ROWS = 10_000
COLUMNS = ("text", "label", "split")
REJECTION_COLUMNS = ("file", "row", "column", "reason")


async def export(dataset: Dataset, *, form: str) -> AsyncIterator[bytes]:
    """Yield the dataset as "jsonl", "csv" or "parquet".

    JSONL and Parquet are exact; in CSV a cell that a spreadsheet would run gets an apostrophe.
    """
    writer = create_writer(form, [*COLUMNS, *_extra_names(dataset.extra_columns).values()])
    if header := writer.header():
        yield header
    async for rows in _pieces(dataset, PARQUET_ROWS if form == "parquet" else EXPORT_ROWS):
        yield writer.encode(map(record, rows))
    if footer := writer.footer():
        yield footer


async def export_rejections(dataset: Dataset) -> AsyncIterator[bytes]:
    """Yield the rejected rows as CSV: file, row, column, reason."""
    writer = CsvWriter(REJECTION_COLUMNS)
    yield writer.header()
    after = 0
    while rows := await in_db(_rejections_after, dataset, after):
        after = rows[-1].pk
        yield writer.encode(
            {name: getattr(row, name) for name in REJECTION_COLUMNS} for row in rows
        )


def record(row: Example) -> dict[str, Any]:
    """Return a row by column name, without columns that have no value."""
    values = {"text": row.text, "label": row.label}
    if row.split:
        values["split"] = row.split
    return values | {name: row.meta[column] for column, name in _extra_names(row.meta).items()}


def _extra_names(columns: Iterable[str]) -> dict[str, str]:
    """Return each extra column's name in the file; text, label and split keep theirs."""
    return {name: f"{name} (extra)" if name.casefold() in COLUMNS else name for name in columns}


async def _pieces(dataset: Dataset, size: int) -> AsyncIterator[list[Example]]:
    after = -1
    read: Callable[..., list[Example]] = _rows_after
    while rows := await in_db(read, dataset, after, size):
        after = rows[-1].index
        yield rows


def _rows_after(dataset: Dataset, index: int, size: int) -> list[Example]:
    return list(dataset.examples.filter(index__gt=index).order_by("index")[:size])


def _rejections_after(dataset: Dataset, key: int) -> list[Rejection]:
    return list(dataset.rejections.filter(pk__gt=key).order_by("pk")[:EXPORT_ROWS])
