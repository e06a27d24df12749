"""A dataset as a download, a piece at a time. No connection is held between pieces."""

from collections.abc import AsyncIterator, Callable

from apps import files
from apps.datasets.models import Dataset, Example, Rejection
from apps.runtime.async_db import in_db

EXPORT_ROWS = 1_000
PARQUET_ROWS = 10_000
CONTENT_TYPES = {
    "jsonl": "application/x-ndjson; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}


async def export(dataset: Dataset, *, form: str) -> AsyncIterator[bytes]:
    """The dataset as "jsonl", "csv" or "parquet".

    JSONL and Parquet are exact; in CSV a cell that a spreadsheet would run gets an apostrophe.
    """
    if form == "parquet":
        parquet = files.ParquetPieces(dataset.extra_columns)
        async for rows in _pieces(dataset, PARQUET_ROWS):
            yield parquet.add([row.row for row in rows])
        yield parquet.end()
        return
    first = True
    async for rows in _pieces(dataset, EXPORT_ROWS):
        examples = [row.row for row in rows]
        if form == "csv":
            text = files.csv_lines(examples, header=first, extra=dataset.extra_columns)
            yield (("\ufeff" if first else "") + text).encode()
        else:
            yield "".join(map(files.jsonl_line, examples)).encode()
        first = False


async def export_rejections(dataset: Dataset) -> AsyncIterator[bytes]:
    """The rejected rows as CSV: file, row, column, reason."""
    yield ("\ufeff" + files.csv_line(["file", "row", "column", "reason"])).encode()
    after = 0
    while rows := await in_db(_rejections_after, dataset, after):
        after = rows[-1].pk
        lines = (files.csv_line([row.file, row.row, row.column, row.reason]) for row in rows)
        yield "".join(lines).encode()


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
