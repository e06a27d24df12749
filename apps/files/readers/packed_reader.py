"""Prints an Excel, Parquet or JSON file as lines of JSON. Runs under `core.bounded`. Pure.

`python -m apps.files.readers.packed_reader '{"path": ..., "kind": ...}'` prints the layout,
and with a "layout" the rows: ["row", number, cells in order], ["fields", number, cells by name] or
["bad", number, column, reason].
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from apps.files.layout import Kind, Layout, Quoting, Said
from apps.files.readers import excel_workbook, json_items, parquet
from apps.files.rows import FormatError, RejectedRow

TUPLES = ("columns", "sheets", "paths", "objects")
READ = {
    Kind.EXCEL: excel_workbook.records,
    Kind.PARQUET: parquet.records,
    Kind.JSON: json_items.records,
}
MAX_ROW = 8_000_000  # characters


def main(request: str) -> None:
    asked = json.loads(request)
    path = Path(asked["path"])
    try:
        if "layout" in asked:
            _print_rows(path, asked["layout"])
        else:
            _print(["layout", asdict(_inspected(path, asked))])
    except FormatError as error:
        _print(["error", str(error)])
    except MemoryError:
        sys.exit(1)
    _print(["end"])


def _inspected(path: Path, asked: dict[str, Any]) -> Layout:
    if asked["kind"] == Kind.PARQUET:
        return parquet.inspect(path)
    if asked["kind"] == Kind.JSON:
        said = asked["said"]["encoding"]
        return json_items.inspect(path, encoding=said, mark=asked["mark"])
    return excel_workbook.inspect(path, said=Said(**asked["said"]))


def _print_rows(path: Path, given: dict[str, Any]) -> None:
    given |= {name: tuple(given[name]) for name in TUPLES}
    layout = Layout(**given | {"kind": Kind(given["kind"]), "quoting": Quoting(given["quoting"])})
    by_name = layout.kind is Kind.JSON
    for number, cells in READ[layout.kind](path, layout):
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
