"""An answer that is JSON, as a collapsible tree. Pure."""

import json
from collections.abc import Iterator
from html import escape
from typing import Any

MAX_CHARACTERS = 200_000
MAX_NODES = 3000
MAX_DEPTH = 40
OPEN_DEPTH = 2
FENCE = "```"


def parse(text: str) -> Any:
    """Return the object or list that a whole answer is, also in a fence; else None."""
    if len(text) > MAX_CHARACTERS:
        return None
    text = _within_fence(text.strip())
    if text[:1] not in {"{", "["}:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if _nodes(value) <= MAX_NODES else None


def _within_fence(text: str) -> str:
    first, _, rest = text.partition("\n")
    is_fenced = first.rstrip() in {FENCE, f"{FENCE}json"} and rest.endswith(f"\n{FENCE}")
    return rest.removesuffix(FENCE).strip() if is_fenced else text


def _nodes(value: Any) -> int:
    """Count the values in it; more than MAX_NODES if it is too large or too deep."""
    count, waiting = 0, [(value, 0)]
    while waiting and count <= MAX_NODES:
        one, depth = waiting.pop()
        count += 1
        if depth > MAX_DEPTH:
            return MAX_NODES + 1
        if isinstance(one, dict):
            waiting.extend((child, depth + 1) for child in one.values())
        elif isinstance(one, list):
            waiting.extend((child, depth + 1) for child in one)
    return count


def render(value: Any) -> str:
    """Return HTML. Every key and text is escaped."""
    return f'<ul class="tree">{"".join(_item(None, value, 0))}</ul>'


def _item(key: str | None, value: Any, depth: int) -> Iterator[str]:
    name = "" if key is None else f'<span class="tree-key">{escape(key)}</span>: '
    if isinstance(value, (dict, list)) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        brackets = "{}" if isinstance(value, dict) else "[]"
        is_open = " open" if depth < OPEN_DEPTH else ""
        yield f"<li><details{is_open}><summary>{name}{brackets[0]}{len(value)}{brackets[1]}"
        yield "</summary><ul>"
        for child_key, child in pairs:
            yield from _item(str(child_key), child, depth + 1)
        yield "</ul></details></li>"
        return
    kind = "word"
    if isinstance(value, str):
        kind = "string"
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        kind = "number"
    shown = value if isinstance(value, str) else json.dumps(value)
    yield f'<li>{name}<span class="tree-{kind}">{escape(shown)}</span></li>'
