"""Tables as files, a piece at a time: the one interface of all writers.

    writer = create_writer("csv", ["text", "label"])
    yield writer.header()
    for records in pieces:
        yield writer.encode(records)
    yield writer.footer()

A writer keeps nothing of a piece that it has returned, so memory is bounded by the largest piece.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

Record = Mapping[str, Any]
"""One row: values by column name. A column that is not in it has no value in this row."""

CONTENT_TYPES = {
    "jsonl": "application/x-ndjson; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
"""By format; the format is also the file name's ending."""


class TableWriter(ABC):
    """Turns records into the bytes of a file."""

    @abstractmethod
    def header(self) -> bytes:
        """Return what comes before the first record."""

    @abstractmethod
    def encode(self, records: Iterable[Record]) -> bytes:
        """Return the bytes of some more records that are ready to be sent."""

    def footer(self) -> bytes:
        """Return what comes after the last record. Nothing can be encoded afterwards."""
        return b""
