"""CSV, JSONL and Parquet out: see `table_writer` for the interface."""

from collections.abc import Sequence

from apps.files.writers.csv_writer import CsvWriter
from apps.files.writers.jsonl_writer import JsonlWriter
from apps.files.writers.parquet_writer import ParquetWriter
from apps.files.writers.table_writer import TableWriter

__all__ = ["CsvWriter", "JsonlWriter", "ParquetWriter", "TableWriter", "create_writer"]


def create_writer(form: str, columns: Sequence[str]) -> TableWriter:
    """Return a writer of "csv", "jsonl" or "parquet" for texts in these columns.

    Raises:
        ValueError: unknown format.
    """
    match form:
        case "csv":
            return CsvWriter(columns)
        case "jsonl":
            return JsonlWriter()
        case "parquet":
            return ParquetWriter(columns)
    raise ValueError(f"Unknown file format “{form}”. Use csv, jsonl or parquet.")
