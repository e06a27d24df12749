"""JSON that is not one object a line: an array of rows, alone or inside an object, as a stream.

Read in `packed_reader`'s process. One item is in memory at a time, and not one that is too large.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import ijson

from apps.files.layout import MAX_COLUMNS, SAMPLE_ROWS, TEXT_COLUMN, Kind, Layout, Records
from apps.files.readers.encoding import open_text
from apps.files.readers.nested import Fields
from apps.files.rows import FormatError, RejectedRow

MAX_DEPTH = 50
MAX_ITEM_EVENTS = 200_000  # keys and values of a row
MAX_LIST_DEPTH = 4  # how many objects the list of rows may be in
BUFFER = 64 << 10

Event = tuple[str, str, Any]


def inspect(path: Path, *, encoding: str, mark: bool) -> Layout:
    """Raises:
    FormatError: it holds no list of rows, is nested too deeply, or is no JSON.
    """
    reader = _Bytes(path, encoding)
    with reader:
        inside, events = _find_list(_events(reader))
        fields = Fields()
        seen = 0
        for number, cells in islice(_items(events, inside), SAMPLE_ROWS):
            seen = number
            if not isinstance(cells, RejectedRow):
                fields.add(cells)
            elif not fields.names:
                raise FormatError(cells.reason)
            if len(fields.names) > MAX_COLUMNS:
                raise FormatError(f"The objects have more than {MAX_COLUMNS:,} different fields.")
    if not fields.names:
        raise FormatError(
            'The list holds no object with a text in it: [{"text": "...", "label": "..."}].'
        )
    about = max(seen, round(path.stat().st_size * seen / max(1, reader.given)))
    return Layout(
        Kind.JSON,
        encoding,
        tuple(fields.names),
        byte_order_mark=mark,
        paths=fields.paths,
        objects=fields.objects,
        inside=inside,
        claimed_rows=about,
    )


def records(path: Path, layout: Layout) -> Records:
    with _Bytes(path, layout.encoding) as reader:
        _, events = _find_list(_events(reader))
        yield from _items(events, layout.inside)


class _Bytes:
    """A text file as the UTF-8 that JSON is written in."""

    def __init__(self, path: Path, encoding: str) -> None:
        self._file = open_text(path, encoding)
        self.given = 0

    def __enter__(self) -> "_Bytes":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def read(self, size: int = BUFFER) -> bytes:
        text = self._file.read(size) if size else ""
        given = text.encode("utf-8", "surrogateescape")
        self.given += len(given)
        return given


@dataclass(slots=True)
class _Deep(Exception):
    depth: int = MAX_DEPTH


def _events(reader: _Bytes) -> Iterator[Event]:
    depth = 0
    for event in ijson.parse(reader, buf_size=BUFFER, use_float=True):
        kind = event[1]
        if kind in {"start_map", "start_array"}:
            depth += 1
            if depth > MAX_DEPTH:
                raise _Deep
        elif kind in {"end_map", "end_array"}:
            depth -= 1
        yield event


def _find_list(events: Iterator[Event]) -> tuple[str, Iterator[Event]]:
    """Goes to the first list whose items are rows.

    Returns:
        The path to it, empty where the file is one, and what comes in it.

    Raises:
        FormatError: there is none.
    """
    depth = 0
    try:
        for path, kind, _ in events:
            if kind == "start_array" and ".item" not in f".{path}" and depth <= MAX_LIST_DEPTH:
                first = next(events)
                if not path or first[1] == "start_map":
                    return path, chain([first], events)
            depth += (kind == "start_map") - (kind == "end_map")
    except _Deep:
        raise FormatError(_too_deep()) from None
    except ijson.JSONError as error:
        raise FormatError(_no_json(error)) from error
    raise FormatError(
        "This JSON file holds one object and no list of rows. Write one object per line, or a "
        'list: [{"text": "...", "label": "..."}].'
    )


def _items(events: Iterator[Event], inside: str) -> Records:
    """The rows of the list that `_find_list` has come to."""
    item = f"{inside}.item" if inside else "item"
    number = 0
    try:
        for path, kind, value in events:
            if path == inside and kind == "end_array":
                return
            is_open = kind in {"start_map", "start_array"}
            whole = _built(events, item, kind) if is_open else value
            number += 1
            yield number, _cells(number, whole)
    except _Deep:
        yield number + 1, RejectedRow(number + 1, "", _too_deep())
    except ijson.JSONError as error:
        yield number + 1, RejectedRow(number + 1, "", _no_json(error))


def _built(events: Iterator[Event], item: str, kind: str) -> Any:
    """One item; None where it is too large to be held."""
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


def _cells(number: int, value: Any) -> dict[str, Any] | RejectedRow:
    if value is _TOO_LARGE:
        return RejectedRow(number, "", f"It has more than {MAX_ITEM_EVENTS:,} values.")
    if isinstance(value, str):
        return {TEXT_COLUMN: value}
    if not isinstance(value, dict):
        return RejectedRow(number, "", "This item of the list is not an object.")
    return {" ".join(name.split()): cell for name, cell in value.items()}


def _too_deep() -> str:
    return f"The JSON is nested more than {MAX_DEPTH} levels deep."


def _no_json(error: Exception) -> str:
    return f"It is not JSON from here on: {str(error).splitlines()[0].strip()[:120]}"
