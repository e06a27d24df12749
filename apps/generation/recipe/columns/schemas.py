"""JSON schemas of a row: described for the model, enforced on its answer (pure)."""

import json
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from apps.core.schemas import json_schemas
from apps.core.schemas.json_schemas import Schema
from apps.core.schemas.json_schemas import closed as closed
from apps.generation.recipe.problems import RecipeError

PLURALS = {
    "string": "strings",
    "integer": "integers",
    "number": "numbers",
    "boolean": "true or false",
    "object": "objects",
    "array": "lists",
}


def checked(schema: Any) -> dict[str, Any]:
    """Returns the schema if every row can be generated and checked with it.

    Raises:
        RecipeError: with the field.
    """
    try:
        return json_schemas.checked(schema, of="A row", sense=False)
    except json_schemas.BadSchema as error:
        raise RecipeError.one(str(error)) from error


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
    """The object schema of a field, or of its items."""
    if schema.get("type") == "array":
        return _object_in(schema["items"])
    return schema if schema.get("type") == "object" else None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- For the answer -----------------------------------------------------------


def first_error(schema: Schema, row: Any, *, loosely: bool = False) -> str:
    """The first error of a row as a sentence; empty if it fits the schema.

    Args:
        loosely: check required fields and types only, no limits.
    """
    return next(iter(errors(schema, row, loosely=loosely)), "")


def errors(schema: Schema, row: Any, *, loosely: bool = False) -> list[str]:
    """Return all errors of a row, see `first_error`."""
    found = sorted(
        Draft202012Validator(closed(schema)).iter_errors(row), key=lambda error: error.json_path
    )
    if loosely:
        found = [error for error in found if error.validator in {"required", "type"}]
    return [_sentence(error) for error in found]


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


def is_free_text(schema: Schema | None, name: str) -> bool:
    """True for a string that the model was free to write."""
    if schema is None:
        return True
    inner = schema["properties"][name]
    return inner.get("type") == "string" and not {"enum", "const"} & inner.keys()


def field_names(schema: Schema | None) -> list[str]:
    """The fields of a row, in order."""
    return ["text"] if schema is None else list(schema["properties"])
