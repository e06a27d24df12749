"""Prints an Excel, Parquet or JSON file as lines of JSON. Runs under `core.sandbox`. Pure.

`python -m apps.files.readers.sandboxed_reader '{"path": ..., "kind": ...}'` prints the layout;
with a "layout" in place of the kind, the rows: ["row", number, cells in order], ["fields", number,
cells by name] or ["bad", number, column, reason].
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from apps.files.errors import FormatError
from apps.files.layout import FileKind, Layout, Quoting, ReadOptions
from apps.files.readers import excel, json_items, parquet
from apps.files.rows import RejectedRow

TUPLES = ("columns", "sheets", "paths", "object_columns")
READERS = {
    FileKind.EXCEL: excel.read_records,
    FileKind.PARQUET: parquet.read_records,
    FileKind.JSON: json_items.read_records,
}
MAX_ROW = 8_000_000  # characters


def main(request: str) -> None:
    wanted = json.loads(request)
    path = Path(wanted["path"])
    try:
        if "layout" in wanted:
            _print_rows(path, layout_from_json(wanted["layout"]))
        else:
            _print(["layout", asdict(_detect_layout(path, wanted))])
    except FormatError as error:
        _print(["error", str(error)])
    except MemoryError:
        sys.exit(1)
    _print(["end"])


def layout_from_json(value: dict[str, Any]) -> Layout:
    """Return the layout that `asdict` made a JSON value of."""
    tuples = {name: tuple(value[name]) for name in TUPLES}
    kinds = {"kind": FileKind(value["kind"]), "quoting": Quoting(value["quoting"])}
    return Layout(**value | tuples | kinds)


def _detect_layout(path: Path, wanted: dict[str, Any]) -> Layout:
    options = ReadOptions(**wanted["options"])
    match FileKind(wanted["kind"]):
        case FileKind.PARQUET:
            return parquet.detect_layout(path)
        case FileKind.JSON:
            encoding = options.encoding or ""
            return json_items.detect_layout(path, encoding=encoding, mark=wanted["mark"])
    return excel.detect_layout(path, options=options)


def _print_rows(path: Path, layout: Layout) -> None:
    by_name = layout.kind is FileKind.JSON
    for number, cells in READERS[layout.kind](path, layout):
        if isinstance(cells, RejectedRow):
            _print(["bad", number, cells.column, cells.reason])
            continue
        row = ["fields", number, cells] if by_name else ["row", number, [*cells.values()]]
        written = json.dumps(row, default=str)
        if len(written) > MAX_ROW:
            _print(["bad", number, "", f"The row has more than {MAX_ROW:,} characters."])
        else:
            sys.stdout.write(written + "\n")


def _print(line: list[Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
