"""Datasets as files: JSONL and Parquet exactly, CSV safe for a spreadsheet."""

import csv
import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from apps.files.rows import ExampleRow

if TYPE_CHECKING:
    pass

# A cell that begins with one of these is a formula to a spreadsheet (the last four are full width).
FORMULA_START = "=+-@\t\r\n\0＝＋－＠"
_FORMULA = re.compile(rf"'*[{re.escape(FORMULA_START)}]")
FIELDS = ("text", "label", "split")
# Of a header no other program writes: the first name alone is in quotes for no need.
_NEEDLESS = r'"[^",;|\t\r\n]+"'
OWN_HEADER = re.compile(rf"{_NEEDLESS}(?P<more>,(?!{_NEEDLESS}(?:,|$)))?")
OLD_HEADER = ",".join(FIELDS)  # of datasets before; also of others' files


def jsonl_line(row: ExampleRow) -> str:
    """The row exactly as it is kept."""
    fields: dict[str, str] = {"text": row.text, "label": row.label}
    if row.split:
        fields["split"] = row.split
    return json.dumps(fields | _extra(row, row.meta), ensure_ascii=False) + "\n"


def csv_lines(
    rows: Iterable[ExampleRow], *, header: bool = False, extra: Sequence[str] = ()
) -> str:
    """Rows for a spreadsheet: a cell that would be a formula gets an apostrophe in front.

    `read` takes that apostrophe away again, from files with our header, so a round trip changes
    nothing.

    Args:
        extra: the names of the extra columns, in order.
    """
    out = _Collected()
    writer = csv.writer(out, lineterminator="\r\n")
    if header:
        out.write(csv_header((*FIELDS, *_free(extra))))
    for row in rows:
        cells = (row.text, row.label, row.split or "", *_extra(row, extra).values())
        writer.writerow(map(spreadsheet_safe, cells))
    return "".join(out.parts)


def csv_line(cells: Iterable[object]) -> str:
    """One line of any table, its cells safe for a spreadsheet."""
    return _joined(spreadsheet_safe(str(cell)) for cell in cells)


def _joined(cells: Iterable[str]) -> str:
    out = _Collected()
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return "".join(out.parts)


def csv_header(names: Sequence[str]) -> str:
    """The first line of a table of ours, by which `read` knows that its cells were made safe."""
    first, *others = map(spreadsheet_safe, names)
    quoted = '"' + first.replace('"', '""') + '"'
    return f"{quoted},{_joined(others)}" if others else f"{quoted}\r\n"


def spreadsheet_safe(cell: str) -> str:
    """The cell, with an apostrophe in front where a spreadsheet would run it as a formula."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def _extra(row: ExampleRow, names: Iterable[str]) -> dict[str, str]:
    return {free: row.meta.get(name, "") for name, free in zip(names, _free(names), strict=True)}


def _free(names: Iterable[str]) -> list[str]:
    """The names of extra columns, none of them one of ours."""
    return [f"{name} (extra)" if name.casefold() in FIELDS else name for name in names]


class ParquetPieces:
    """A Parquet file, written as it is sent: `add` and `end` give the bytes that are ready.

    One row group a call of `add`, so memory is bounded by what one call holds.
    """

    def __init__(self, extra: Sequence[str] = ()) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._extra = tuple(extra)
        names = (*FIELDS, *_free(self._extra))
        self._schema = pa.schema([(name, pa.string()) for name in names])
        self._sink = _Sink()
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self._sink, mode="w"), self._schema, compression="zstd"
        )

    def add(self, rows: Sequence[ExampleRow]) -> bytes:
        import pyarrow as pa

        columns: list[list[str | None]] = [
            [row.text for row in rows],
            [row.label for row in rows],
            [row.split or None for row in rows],
            *([row.meta.get(name) for row in rows] for name in self._extra),
        ]
        arrays: list[pa.Array] = [pa.array(column, pa.string()) for column in columns]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        return self._sink.taken()

    def end(self) -> bytes:
        self._writer.close()
        return self._sink.taken()


class _Sink:
    """What a writer of files sees as one; the bytes can be taken away meanwhile."""

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

    def taken(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


class _Collected:
    def __init__(self) -> None:
        self.parts: list[str] = []

    def write(self, text: str) -> int:
        self.parts.append(text)
        return len(text)
