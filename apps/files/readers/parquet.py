"""Parquet, a batch of rows at a time.

pyarrow reads batches within a row group and writes to a stream. It takes 90 MB of memory, so only
this module and the writer import it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.files.errors import FormatError
from apps.files.layout import MAX_CELL, MAX_COLUMNS, FileKind, Layout, Records
from apps.files.rows import RejectedRow

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

BATCH_ROWS = 1_024
BUFFER = 1 << 20  # bytes of a column read ahead
LONG_ENTRY = 32_768  # bytes: a batch of them is 32 MB at most
MAX_CHUNK = 256 << 20  # bytes one column of one row group unpacks to: held in memory
SMALL_CHUNK = 16 << 20
MAX_RATIO = 200  # of a larger one, unpacked to packed; texts pack ten times
MAX_ROWS = 20_000_000


def detect_layout(path: Path) -> Layout:
    """Raises:
    FormatError: the file is damaged, too wide, or its row groups are too large to read safely.
    """
    with _opened(path) as file:
        names = [" ".join(name.split()) for name in file.schema_arrow.names]
        if len(names) > MAX_COLUMNS:
            raise FormatError(
                f"The file has {len(names):,} columns and the limit is {MAX_COLUMNS:,}."
            )
        if len(set(names)) < len(names):
            raise FormatError("Two columns have the same name. Rename one.")
        if file.metadata.num_rows > MAX_ROWS:
            raise FormatError(
                f"The file has {file.metadata.num_rows:,} rows and the limit is {MAX_ROWS:,}."
            )
        _check_sizes(file)
        rows = int(file.metadata.num_rows)
    stray = sum(a != b for a, b in zip(names, file.schema_arrow.names, strict=True))
    return Layout(FileKind.PARQUET, "", tuple(names), cleaned_names=stray, estimated_rows=rows)


def read_records(path: Path, layout: Layout) -> Records:
    number = 0
    for batch in _batches(path):
        columns = [_values(column) for column in batch.columns]
        for values in zip(*columns, strict=True):
            number += 1
            cells = dict(zip(layout.columns, values, strict=True))
            huge = next((name for name, value in cells.items() if value is _Huge), None)
            if huge is None:
                yield number, cells
            else:
                yield number, RejectedRow(number, huge, f"More than {MAX_CELL:,} characters.")


def _batches(path: Path) -> "Iterator[pa.RecordBatch]":
    """Yield the rows of each row group in turn, with as little in memory as possible.

    Texts that are all different must not be kept as dictionaries (a million of them take 260 MB);
    a long cell that a million rows refer to must be. The longest entry of a row group decides.
    """
    with _opened(path) as plain:
        _check_sizes(plain)
        texts = _texts_of(plain)
        with _opened(path, dictionaries=texts) as coded:
            for group in range(plain.metadata.num_row_groups):
                source = coded if _has_long_entries(coded, group) else plain
                yield from source.iter_batches(batch_size=BATCH_ROWS, row_groups=[group])


def _texts_of(file: "pq.ParquetFile") -> list[str]:
    import pyarrow as pa

    return [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]


def _has_long_entries(coded: "pq.ParquetFile", group: int) -> bool:
    """Return True if the dictionaries of a row group, stored before its rows, hold long texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    first = next(coded.iter_batches(batch_size=1, row_groups=[group]), None)
    if first is None:
        return False
    dictionaries = [
        column.dictionary for column in first.columns if isinstance(column, pa.DictionaryArray)
    ]
    longest = (pc.max(pc.binary_length(entries)).as_py() for entries in dictionaries)
    return any(length is not None and length > LONG_ENTRY for length in longest)


class _Huge:
    """Marks a cell that is too long for a Python string."""


def _values(column: "pa.Array") -> list[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.DictionaryArray):
        places = column.indices.to_pylist()
        used = sorted({place for place in places if place is not None})  # of perhaps a million
        entries = _values(column.dictionary.take(pa.array(used, pa.int64())))
        by_place = dict(zip(used, entries, strict=True))
        return [None if place is None else by_place[place] for place in places]
    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        values: list[Any] = column.to_pylist()
        return [v.decode(errors="surrogateescape") if isinstance(v, bytes) else v for v in values]
    lengths = pc.binary_length(column)
    longest = pc.max(lengths).as_py()
    if longest is None or longest <= MAX_CELL:
        return list(column.to_pylist())
    return [
        _Huge if (length or 0) > MAX_CELL else column[place].as_py()
        for place, length in enumerate(lengths.to_pylist())
    ]


def _check_sizes(file: "pq.ParquetFile") -> None:
    meta = file.metadata
    for group in range(meta.num_row_groups):
        for column in range(meta.num_columns):
            chunk = meta.row_group(group).column(column)
            size = chunk.total_uncompressed_size
            if size > SMALL_CHUNK and size > MAX_RATIO * chunk.total_compressed_size:
                raise FormatError(
                    f"A column unpacks from {chunk.total_compressed_size / 2**10:,.0f} KB to "
                    f"{size / 2**20:,.0f} MB, which is too much to read safely. "
                    "Save it as CSV and choose that."
                )
            if size > MAX_CHUNK:
                raise FormatError(
                    f"A column of row group {group + 1} unpacks to {size / 2**20:,.0f} MB and the "
                    f"limit is {MAX_CHUNK >> 20} MB. Write the file with smaller row groups."
                )


@contextmanager
def _opened(path: Path, *, dictionaries: Sequence[str] = ()) -> "Iterator[pq.ParquetFile]":
    """Args:
    dictionaries: the columns that are not unpacked into texts.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(
            path, read_dictionary=list(dictionaries), pre_buffer=False, buffer_size=BUFFER
        ) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise FormatError(
            f"The Parquet file is incomplete or damaged ({str(error).splitlines()[0][:120]})."
        ) from error
