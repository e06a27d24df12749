"""What differs between two versions of a recipe, line by line (pure)."""

import json
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from apps.core.schemas.json_types import JsonObject, JsonValue

MAX_LINES = 1_000
"""Of each recipe: what comes after them is not compared."""
CONTEXT = 2


class Line(NamedTuple):
    """A line of a comparison."""

    change: Literal["same", "removed", "added", "skipped"]
    text: str


def compare_recipes(old: JsonObject, new: JsonObject) -> list[Line]:
    """Return the lines that differ, each with some that are the same around it."""
    before, after = recipe_lines(old)[:MAX_LINES], recipe_lines(new)[:MAX_LINES]
    found: list[Line] = []
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if found:
            found.append(Line("skipped", "…"))
        for tag, low, high, first, last in group:
            if tag == "equal":
                found += [Line("same", text) for text in before[low:high]]
                continue
            found += [Line("removed", text) for text in before[low:high]]
            found += [Line("added", text) for text in after[first:last]]
    return found


def recipe_lines(recipe: JsonObject) -> list[str]:
    """Write a recipe as indented lines: a prompt keeps its own."""
    return list(_lines(recipe, ""))


def _lines(value: JsonValue, indent: str, key: str = "") -> Iterator[str]:
    head = f"{indent}{key}:" if key not in ("", "-") else f"{indent}{key}"
    deeper = f"{indent}  " if key else indent
    if isinstance(value, dict):
        if key:
            yield f"{head} {value['name']}" if isinstance(value.get("name"), str) else head
        for name, inner in value.items():
            yield from _lines(inner, deeper, name)
    elif isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        yield head
        for inner in value:
            yield from _lines(inner, deeper, "-")
    elif isinstance(value, list):
        yield f"{head} {', '.join(_word(inner) for inner in value)}"
    elif isinstance(value, str) and "\n" in value:
        yield head
        yield from (f"{deeper}{line}" for line in value.splitlines())
    else:
        yield f"{head} {_word(value)}"


def _word(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)
