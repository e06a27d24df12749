"""Values nested in cells that are objects or lists, by their path: `annotations.0.value`."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from apps.files.layout import Cells

MAX_DEPTH = 8
MAX_ITEMS = 3  # of a list, offered as paths
MAX_PATHS = 200


class FieldNames:
    """The field names of some rows, and the paths nested in them."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self._paths: dict[str, None] = {}
        self._objects: Counter[str] = Counter()

    def add(self, cells: Cells) -> None:
        self.names |= dict.fromkeys(cells)
        self._paths |= dict.fromkeys(leaf_paths(cells))
        for name, value in cells.items():
            first = value[0] if isinstance(value, list) and value else value
            self._objects[name] += 1 if isinstance(first, dict | list) else -1

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(islice(self._paths, MAX_PATHS))

    @property
    def object_columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if self._objects[name] > 0)


def leaf_paths(cells: Cells) -> list[str]:
    """Return the paths of a row to plain values that have no column of their own."""
    found: list[str] = []
    for name, value in cells.items():
        if isinstance(value, dict | list):
            for path in _leaves(value, 1):
                found.append(f"{name}.{path}")
                if len(found) == MAX_PATHS:
                    return found
    return found


def _leaves(value: dict[str, Any] | list[Any], depth: int) -> Iterator[str]:
    inner = value.items() if isinstance(value, dict) else enumerate(value[:MAX_ITEMS])
    for key, cell in inner:
        if "." in str(key):  # it looks like a path
            continue
        if isinstance(cell, dict | list):
            if depth < MAX_DEPTH:
                yield from (f"{key}.{path}" for path in _leaves(cell, depth + 1))
        elif cell is not None:
            yield str(key)


def value_at(cells: Cells, path: str) -> tuple[bool, Any]:
    """Return True and the value at a path, or False and None."""
    if path in cells:
        return True, cells[path]
    name = max((n for n in cells if path.startswith(f"{n}.")), key=len, default=None)
    if name is None:
        return False, None
    value = cells[name]
    for part in path[len(name) + 1 :].split(".")[:MAX_DEPTH]:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return False, None
    return True, value
