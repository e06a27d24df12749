"""JSON that is not one object per line: an array of rows, alone or inside an object, as a stream.

Runs in the process of `sandboxed_reader`. One item is in memory at a time, if it is not too large.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import ijson

from apps.files.errors import FormatError
from apps.files.layout import (
    MAX_COLUMNS,
    SAMPLE_ROWS,
    TEXT_COLUMN,
    Cells,
    FileKind,
    Layout,
    Records,
)
from apps.files.nested import FieldNames
from apps.files.readers.lines import open_text
from apps.files.rows import RejectedRow

MAX_DEPTH = 50
MAX_ITEM_EVENTS = 200_000  # keys and values of a row
MAX_LIST_DEPTH = 4  # objects around the list of rows
BUFFER = 64 << 10

Event = tuple[str, str, Any]


def detect_layout(path: Path, *, encoding: str, mark: bool) -> Layout:
    """Raises:
    FormatError: the file holds no list of rows, is nested too deeply, or is not JSON.
    """
    reader = _Utf8File(path, encoding)
    with reader:
        list_path, events = _find_list(_events(reader))
        fields = FieldNames()
        seen = 0
        for number, cells in islice(_items(events, list_path), SAMPLE_ROWS):
            seen = number
            if not isinstance(cells, RejectedRow):
                fields.add(cells)
            elif not fields.names:
                raise FormatError(cells.reason)
            if len(fields.names) > MAX_COLUMNS:
                raise FormatError(f"Too many fields. The limit is {MAX_COLUMNS:,}.")
    if not fields.names:
        raise FormatError(
            'The list holds no object with a text in it: [{"text": "...", "label": "..."}].'
        )
    about = max(seen, round(path.stat().st_size * seen / max(1, reader.bytes_read)))
    return Layout(
        FileKind.JSON,
        encoding,
        tuple(fields.names),
        byte_order_mark=mark,
        paths=fields.paths,
        object_columns=fields.object_columns,
        list_path=list_path,
        estimated_rows=about,
    )


def read_records(path: Path, layout: Layout) -> Records:
    with _Utf8File(path, layout.encoding) as reader:
        _, events = _find_list(_events(reader))
        yield from _items(events, layout.list_path)


class _Utf8File:
    """A text file of any encoding, read as the UTF-8 that JSON is written in."""

    def __init__(self, path: Path, encoding: str) -> None:
        self._file = open_text(path, encoding)
        self.bytes_read = 0

    def __enter__(self) -> "_Utf8File":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def read(self, size: int = BUFFER) -> bytes:
        text = self._file.read(size) if size else ""
        data = text.encode("utf-8", "surrogateescape")
        self.bytes_read += len(data)
        return data


@dataclass(slots=True)
class _TooDeep(Exception):
    depth: int = MAX_DEPTH


def _events(reader: _Utf8File) -> Iterator[Event]:
    depth = 0
    for event in ijson.parse(reader, buf_size=BUFFER, use_float=True):
        kind = event[1]
        if kind in {"start_map", "start_array"}:
            depth += 1
            if depth > MAX_DEPTH:
                raise _TooDeep
        elif kind in {"end_map", "end_array"}:
            depth -= 1
        yield event


def _find_list(events: Iterator[Event]) -> tuple[str, Iterator[Event]]:
    """Skip to the first list whose items are rows.

    Returns:
        The path to the list, empty if the file is the list, and the events inside it.

    Raises:
        FormatError: the file has no such list.
    """
    depth = 0
    try:
        for path, kind, _ in events:
            if kind == "start_array" and ".item" not in f".{path}" and depth <= MAX_LIST_DEPTH:
                first = next(events)
                if not path or first[1] == "start_map":
                    return path, chain([first], events)
            depth += (kind == "start_map") - (kind == "end_map")
    except _TooDeep:
        raise FormatError(_too_deep_message()) from None
    except ijson.JSONError as error:
        raise FormatError(_not_json_message(error)) from error
    raise FormatError(
        "This JSON file holds one object and no list of rows. Write one object per line, or a "
        'list: [{"text": "...", "label": "..."}].'
    )


def _items(events: Iterator[Event], list_path: str) -> Records:
    """Yield the rows of the list that `_find_list` skipped to."""
    item = f"{list_path}.item" if list_path else "item"
    number = 0
    try:
        for path, kind, value in events:
            if path == list_path and kind == "end_array":
                return
            is_open = kind in {"start_map", "start_array"}
            whole = _build_item(events, item, kind) if is_open else value
            number += 1
            yield number, _cells(number, whole)
    except _TooDeep:
        yield number + 1, RejectedRow(number + 1, "", _too_deep_message())
    except ijson.JSONError as error:
        yield number + 1, RejectedRow(number + 1, "", _not_json_message(error))


def _build_item(events: Iterator[Event], item: str, kind: str) -> Any:
    """Build one item; `_TOO_LARGE` if it has too many values to be held in memory."""
    builder = ijson.ObjectBuilder()
    builder.event(kind, None)
    end = kind.replace("start", "end")
    count = 0
    for path, event, value in events:
        count += 1
        if count <= MAX_ITEM_EVENTS:
            builder.event(event, value)
        if event == end and path == item:
            break
    return builder.value if count <= MAX_ITEM_EVENTS else _TOO_LARGE


_TOO_LARGE = object()


def _cells(number: int, value: Any) -> Cells | RejectedRow:
    if value is _TOO_LARGE:
        return RejectedRow(number, "", f"The row has more than {MAX_ITEM_EVENTS:,} values.")
    if isinstance(value, str):
        return {TEXT_COLUMN: value}
    if not isinstance(value, dict):
        return RejectedRow(number, "", "This item of the list is not an object.")
    return {" ".join(name.split()): cell for name, cell in value.items()}


def _too_deep_message() -> str:
    return f"The JSON is nested more than {MAX_DEPTH} levels deep."


def _not_json_message(error: Exception) -> str:
    return f"The file is not JSON from here on: {str(error).splitlines()[0].strip()[:120]}"
