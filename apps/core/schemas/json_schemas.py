"""JSON schemas of what a model is to answer: the part that is taken here (pure).

A part of JSON Schema that every grammar of llama.cpp enforces and that can be checked in bounded
time: no references, no patterns.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from apps.core.schemas.json_types import JsonObject

MAX_DEPTH = 5
MAX_FIELDS = 100
MAX_NAME = 100  # characters
# llama.cpp refuses a grammar that repeats something 2,000 times.
MAX_LENGTH = 1_900

COMMON = {"type", "title", "description", "enum", "const", "default", "examples"}
KEYWORDS: dict[str, set[str]] = {
    "object": {"properties", "required", "additionalProperties", "$schema", "$id"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"minLength", "maxLength"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "boolean": set(),
}
LIMITS = (
    *(("minimum", "maximum"), ("minimum", "exclusiveMaximum"), ("exclusiveMinimum", "maximum")),
    *(("exclusiveMinimum", "exclusiveMaximum"), ("minLength", "maxLength")),
    ("minItems", "maxItems"),
)
LENGTHS = ("minLength", "maxLength", "minItems", "maxItems")

Schema = Mapping[str, Any]


class BadSchema(ValueError):
    """A schema that cannot be used. The message names the field and what is wrong with it."""


def checked(schema: Any, *, of: str = "An answer", sense: bool = True) -> JsonObject:
    """The schema, if every answer can be made and checked with it.

    Args:
        of: what it describes, as the beginning of a sentence.
        sense: also refuse what no answer can fit, see `contradiction`.

    Raises:
        BadSchema
    """
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise BadSchema(f'{of} must be a JSON object. Start the schema with {{"type": "object"}}.')
    if not schema.get("properties"):
        raise BadSchema("The schema has no fields. Add at least one.")
    count = _check(schema, "", 1)
    if count > MAX_FIELDS:
        raise BadSchema(f"The schema has {count} fields. The limit is {MAX_FIELDS}.")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        place = ".".join(str(step) for step in error.absolute_path) or "The schema"
        raise BadSchema(f"{place}: {error.message}.") from error
    if sense and (problem := contradiction(schema)):
        raise BadSchema(problem)
    return dict(schema)


def contradiction(schema: Schema, name: str = "") -> str:
    """Return the reason why no answer can fit, where limits exclude each other; else ""."""
    where = f"“{name}”" if name else "The schema"
    for smallest, largest in LIMITS:
        low, high = schema.get(smallest), schema.get(largest)
        if isinstance(low, int | float) and isinstance(high, int | float):
            strict = "exclusive" in f"{smallest}{largest}"
            if low > high or (strict and low == high):
                return f"{where}: no value fits {smallest} {low:g} and {largest} {high:g}."
    inner = [(name, schema["items"])] if isinstance(schema.get("items"), Mapping) else []
    for field, found in (schema.get("properties") or {}).items():
        inner.append((f"{name}.{field}" if name else str(field), found))
    return next(filter(None, (contradiction(found, where) for where, found in inner)), "")


def _check(schema: Any, name: str, depth: int) -> int:
    """Checks one schema and those in it; returns how many fields there are."""
    where = f"“{name}”" if name else "The schema"
    if not isinstance(schema, Mapping):
        raise BadSchema(f'{where} must be an object such as {{"type": "string"}}.')
    if depth > MAX_DEPTH:
        raise BadSchema(f"{where} is nested too deeply. The limit is {MAX_DEPTH} levels.")
    kind = schema.get("type", "string" if "enum" in schema else None)
    if not isinstance(kind, str) or kind not in KEYWORDS:
        known = ", ".join(KEYWORDS)
        raise BadSchema(f"{where} needs one type of {known}.")
    for keyword in schema.keys() - COMMON - KEYWORDS[kind]:
        raise BadSchema(f"{where}: “{keyword}” is not allowed for type {kind}.")
    for keyword in LENGTHS:
        length = schema.get(keyword, 0)
        if isinstance(length, int | float) and length > MAX_LENGTH:
            raise BadSchema(f"{where}: {keyword} may be at most {MAX_LENGTH:,}.")
    if "enum" in schema:
        _check_enum(schema["enum"], where)
    if kind == "array":
        if "items" not in schema:
            raise BadSchema(f"{where} is a list. Describe its items with “items”.")
        return _check(schema["items"], name, depth + 1)
    if kind == "object":
        return _check_properties(schema, name, where, depth)
    return 0


def _check_enum(values: Any, where: str) -> None:
    if not isinstance(values, list) or not values:
        raise BadSchema(f"{where}: “one of” needs at least one value.")
    if any(not isinstance(value, str | int | float | bool) for value in values):
        raise BadSchema(f"{where}: the values of “one of” must be strings or numbers.")


def _check_properties(schema: Schema, name: str, where: str, depth: int) -> int:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        raise BadSchema(f"{where} is an object without fields.")
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise BadSchema(f"{where}: “required” is a list of field names.")
    if twice := [name for name, count in Counter(required).items() if count > 1]:
        raise BadSchema(f"{where} has two fields named “{twice[0]}”.")
    for missing in [field for field in required if field not in properties]:
        raise BadSchema(f"{where}: “{missing}” is required but is not a field.")
    if not isinstance(schema.get("additionalProperties", False), bool):
        raise BadSchema(f"{where}: “additionalProperties” is true or false.")
    count = 0
    for field, inner in properties.items():
        if not isinstance(field, str) or not field.strip() or len(field) > MAX_NAME:
            raise BadSchema(f"{where}: a field has no name, or one that is too long.")
        count += 1 + _check(inner, f"{name}.{field}" if name else field, depth + 1)
    return count


def closed(schema: Schema) -> JsonObject:
    """The schema with no room for fields nobody asked for, as it is sent and checked.

    llama.cpp's two grammar engines differ in what they allow where nothing is said.
    """
    result = dict(schema)
    if "properties" in schema:
        result["properties"] = {name: closed(inner) for name, inner in schema["properties"].items()}
        result.setdefault("additionalProperties", False)
    if "items" in schema:
        result["items"] = closed(schema["items"])
    return result
