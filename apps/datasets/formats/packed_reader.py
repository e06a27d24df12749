"""Reads an Excel or Parquet file and prints it as lines of JSON. Runs under `core.bounded`. Pure.

`python -m apps.datasets.formats.packed_reader '{"path": ..., "kind": ...}'` prints the layout,
and with a "layout" the rows: ["row", number, cells] or ["bad", number, column, reason].
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from apps.datasets.formats import excel, parquet
from apps.datasets.formats.layout import Kind, Layout, Quoting, Said
from apps.datasets.formats.rows import FormatError, RejectedRow

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
    return excel.inspect(path, said=Said(**asked["said"]))


def _print_rows(path: Path, given: dict[str, Any]) -> None:
    given |= {name: tuple(given[name]) for name in ("columns", "sheets")}
    layout = Layout(**given | {"kind": Kind(given["kind"]), "quoting": Quoting(given["quoting"])})
    read = parquet.records if layout.kind is Kind.PARQUET else excel.records
    for number, cells in read(path, layout):
        if isinstance(cells, RejectedRow):
            _print(["bad", number, cells.column, cells.reason])
            continue
        written = json.dumps(["row", number, list(cells.values())], default=str)
        if len(written) > MAX_ROW:
            _print(["bad", number, "", f"The row has more than {MAX_ROW:,} characters."])
        else:
            sys.stdout.write(written + "\n")


def _print(line: list[Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
