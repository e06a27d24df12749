"""JSON schemas of tools' arguments, as other programs write them: which ones a model can use. Pure.

A schema may be made to take for ever by references that double with each level, so its size is
counted with every reference replaced.
"""

import json
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

MAX_BYTES = 20_000
MAX_DEPTH = 40
# With every reference replaced by its target. The largest that are in use have some hundred.
MAX_PARTS = 5_000
REFERENCES = ("$ref", "$dynamicRef")


def schema_problem(schema: Any) -> str:
    """Return the reason why no model can use a tool with this schema; "" where it can."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "the arguments are not an object."
    if _depth_beyond(schema, MAX_DEPTH):
        return f"the schema is nested deeper than {MAX_DEPTH} levels."
    if len(json.dumps(schema)) > MAX_BYTES:
        return f"the schema is larger than {MAX_BYTES:,} bytes."
    if any(not reference.startswith("#") for reference in _references(schema)):
        return "the schema refers to another document."
    if _parts(schema) > MAX_PARTS:
        return f"the schema expands to more than {MAX_PARTS:,} parts."
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"the schema is not valid: {error.message[:200]}."
    except RecursionError:
        return "the schema refers to itself."
    return ""


def _inner(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _depth_beyond(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most + 1):
        level = [inner for one in level for inner in _inner(one) if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value[key] for key in REFERENCES if isinstance(value.get(key), str)]
    else:
        own = []
    return own + [found for inner in _inner(value) for found in _references(inner)]


def _parts(schema: dict[str, Any]) -> int:
    """Objects and lists in a schema whose references are replaced, once where they go round."""
    sizes: dict[int, int] = {}

    def size(value: Any, within: frozenset[int]) -> int:
        if not isinstance(value, dict | list):
            return 0
        if id(value) in within:
            return 1
        if id(value) not in sizes:
            here = within | {id(value)}
            own = 1 + sum(size(inner, here) for inner in _inner(value))
            if isinstance(value, dict):
                for key in REFERENCES:
                    own += size(_referred(schema, value.get(key)), here)
            sizes[id(value)] = own
        return sizes[id(value)]

    try:
        return size(schema, frozenset())
    except RecursionError:  # a chain of references as long as the schema
        return MAX_PARTS + 1


def _referred(schema: Any, reference: Any) -> Any:
    """Return the target of a JSON pointer within the schema; None for anything else."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found = schema
    for step in filter(None, reference[1:].split("/")):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(key)
        elif isinstance(found, list) and key.isdecimal() and len(key) < 6:
            found = found[int(key)] if int(key) < len(found) else None
        else:
            return None
    return found
