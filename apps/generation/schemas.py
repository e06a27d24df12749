"""JSON schemas of a row: what is taken, how a model is told, what an answer is held against (pure).

A part of JSON Schema that every grammar of llama.cpp enforces and that can be checked in bounded
time: no references, no patterns.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError

from apps.generation.problems import RecipeError

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
LENGTHS = ("minLength", "maxLength", "minItems", "maxItems")
PLURALS = {
    "string": "strings",
    "integer": "integers",
    "number": "numbers",
    "boolean": "true or false",
    "object": "objects",
    "array": "lists",
}

Schema = Mapping[str, Any]


def checked(schema: Any) -> dict[str, Any]:
    """The schema, if every row can be made and checked with it.

    Raises:
        RecipeError: naming the field and what is wrong with it.
    """
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise RecipeError.of('A row is a JSON object: the schema begins with {"type": "object"}.')
    if not schema.get("properties"):
        raise RecipeError.of("The schema has no field. Add at least one.")
    count = _check(schema, "", 1)
    if count > MAX_FIELDS:
        raise RecipeError.of(f"The schema has {count} fields; at most {MAX_FIELDS}.")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        place = ".".join(str(step) for step in error.absolute_path) or "The schema"
        raise RecipeError.of(f"{place}: {error.message}.") from error
    return dict(schema)


def _check(schema: Any, name: str, depth: int) -> int:
    """Checks one schema and those in it; returns how many fields there are."""
    where = f"“{name}”" if name else "The schema"
    if not isinstance(schema, Mapping):
        raise RecipeError.of(f'{where} must be an object such as {{"type": "string"}}.')
    if depth > MAX_DEPTH:
        raise RecipeError.of(f"{where} is nested too deeply: at most {MAX_DEPTH} levels.")
    kind = schema.get("type", "string" if "enum" in schema else None)
    if not isinstance(kind, str) or kind not in KEYWORDS:
        known = ", ".join(KEYWORDS)
        raise RecipeError.of(f"{where} needs one type of {known}.")
    for keyword in schema.keys() - COMMON - KEYWORDS[kind]:
        raise RecipeError.of(f"{where}: “{keyword}” cannot be used with the type {kind} here.")
    for keyword in LENGTHS:
        length = schema.get(keyword, 0)
        if isinstance(length, int | float) and length > MAX_LENGTH:
            raise RecipeError.of(f"{where}: {keyword} may be at most {MAX_LENGTH:,}.")
    if "enum" in schema:
        _check_enum(schema["enum"], where)
    if kind == "array":
        if "items" not in schema:
            raise RecipeError.of(f"{where} is a list: say with “items” what is in it.")
        return _check(schema["items"], name, depth + 1)
    if kind == "object":
        return _check_properties(schema, name, where, depth)
    return 0


def _check_enum(values: Any, where: str) -> None:
    if not isinstance(values, list) or not values:
        raise RecipeError.of(f"{where}: “one of” needs at least one value.")
    if any(not isinstance(value, str | int | float | bool) for value in values):
        raise RecipeError.of(f"{where}: the values of “one of” must be texts or numbers.")


def _check_properties(schema: Schema, name: str, where: str, depth: int) -> int:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        raise RecipeError.of(f"{where} is an object without fields.")
    required = schema.get("required", [])
    if not isinstance(required, list):
        raise RecipeError.of(f"{where}: “required” is a list of field names.")
    for missing in [field for field in required if field not in properties]:
        raise RecipeError.of(f"{where}: “{missing}” is required but there is no such field.")
    if not isinstance(schema.get("additionalProperties", False), bool):
        raise RecipeError.of(f"{where}: “additionalProperties” is true or false.")
    count = 0
    for field, inner in properties.items():
        if not isinstance(field, str) or not field.strip() or len(field) > MAX_NAME:
            raise RecipeError.of(f"{where}: a field has no name, or one that is too long.")
        count += 1 + _check(inner, f"{name}.{field}" if name else field, depth + 1)
    return count


def closed(schema: Schema) -> dict[str, Any]:
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


# --- For the model ------------------------------------------------------------


def described(schema: Schema) -> str:
    """The fields in words, for the system message. The demo model is trained on this wording."""
    return "\n".join(["Answer with one JSON object with these fields:", *_field_lines(schema, "")])


def _field_lines(schema: Schema, indent: str) -> Iterator[str]:
    required = schema.get("required", [])
    for name, inner in schema["properties"].items():
        optional = "" if name in required else ", optional"
        note = f" ({inner['description']})" if inner.get("description") else ""
        fields = _object_in(inner)
        colon = ", with these fields:" if fields else ""
        yield f"{indent}- {name}: {_kind(inner)}{optional}{note}{colon}"
        if fields:
            yield from _field_lines(fields, f"{indent}  ")


def _kind(schema: Schema) -> str:
    if "const" in schema:
        return f"always {_json(schema['const'])}"
    if "enum" in schema:
        return "one of " + ", ".join(_json(value) for value in schema["enum"])
    match schema["type"]:
        case "boolean":
            return "true or false"
        case "array":
            items = schema["items"]
            plural = PLURALS[items.get("type", "string")]
            values = f": each {_kind(items)}" if "enum" in items else ""
            return f"list of {plural}{values}{_range(schema, 'minItems', 'maxItems', ' items')}"
        case "string":
            return f"string{_range(schema, 'minLength', 'maxLength', ' characters')}"
        case "integer" | "number" as kind:
            return f"{kind}{_range(schema, 'minimum', 'maximum', '')}"
        case kind:
            return str(kind)


def _range(schema: Schema, smallest: str, largest: str, unit: str) -> str:
    low, high = schema.get(smallest), schema.get(largest)
    if low is not None and high is not None:
        return f", from {low} to {high}{unit}"
    if high is not None:
        return f", at most {high}{unit}"
    return f", at least {low}{unit}" if low is not None else ""


def _object_in(schema: Schema) -> Schema | None:
    """The object a field is, or is a list of."""
    if schema.get("type") == "array":
        return _object_in(schema["items"])
    return schema if schema.get("type") == "object" else None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- For the answer -----------------------------------------------------------


def first_error(schema: Schema, row: Any) -> str:
    """Why a row does not fit the schema, as a sentence; empty when it does."""
    errors = sorted(
        Draft202012Validator(closed(schema)).iter_errors(row), key=lambda error: error.json_path
    )
    return _sentence(errors[0]) if errors else ""


def _sentence(error: ValidationError) -> str:
    place = ".".join(str(step) for step in error.absolute_path)
    message = error.message if len(error.message) <= 200 else f"{error.message[:200]}…"
    return f"“{place}”: {message}." if place else f"{message}."


def free_texts(schema: Schema | None, row: Any) -> list[str]:
    """The strings the model was free to write, in the schema's order."""
    if schema is None:
        return [text for text in row.values() if isinstance(text, str)]
    if "enum" in schema or "const" in schema:
        return []
    if isinstance(row, dict):
        properties = schema.get("properties", {})
        return [
            text
            for name, inner in properties.items()
            if name in row
            for text in free_texts(inner, row[name])
        ]
    if isinstance(row, list):
        return [text for item in row for text in free_texts(schema["items"], item)]
    return [row] if isinstance(row, str) else []


def field_names(schema: Schema | None) -> list[str]:
    """The fields of a row, in order."""
    return ["text"] if schema is None else list(schema["properties"])
