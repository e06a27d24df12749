"""Parquet, written while it is sent: one row group for each piece, compressed with Zstandard."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from apps.files.writers.table_writer import Record, TableWriter

Column = Callable[[Iterable[Any], Any], Any]
"""Makes a `pyarrow.Array` of a column's values and its `pyarrow.DataType`."""


class ParquetWriter(TableWriter):
    """A table of texts, or of the types in a schema. A missing value is null."""

    def __init__(
        self, columns: Sequence[str] = (), *, schema: Any = None, column: Column | None = None
    ) -> None:
        """
        Args:
            schema: a `pyarrow.Schema` in place of `columns`.
            column: converts the values of a column, for types that pyarrow does not convert alone.
        """
        import pyarrow as pa  # 40 MB: only processes that write Parquet load it
        import pyarrow.parquet as pq

        self._schema = schema or pa.schema([(name, pa.string()) for name in columns])
        self._column = column or (lambda values, kind: pa.array(list(values), kind))
        self._buffer = _Buffer()
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self._buffer, mode="w"), self._schema, compression="zstd"
        )

    def header(self) -> bytes:
        return self._buffer.drain()

    def encode(self, records: Iterable[Record]) -> bytes:
        import pyarrow as pa

        rows = list(records)
        arrays = [
            self._column((row.get(field.name) for row in rows), field.type)
            for field in self._schema
        ]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        return self._buffer.drain()

    def footer(self) -> bytes:
        self._writer.close()
        return self._buffer.drain()


class _Buffer:
    """A write-only file whose bytes are handed on: pyarrow asks for no more than these methods."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._written = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def drain(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)
