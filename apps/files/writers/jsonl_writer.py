"""JSONL: one JSON object per line, exactly as the record is."""

import json
from collections.abc import Iterable

from apps.files.writers.table_writer import Record, TableWriter


class JsonlWriter(TableWriter):
    """A line holds the keys of its own record only, in their order."""

    def header(self) -> bytes:
        return b""

    def encode(self, records: Iterable[Record]) -> bytes:
        lines = "".join(f"{json.dumps(dict(row), ensure_ascii=False)}\n" for row in records)
        # Half of a surrogate pair is not UTF-8. Its backslash escape is the one of JSON.
        return lines.encode("utf-8", "backslashreplace")
