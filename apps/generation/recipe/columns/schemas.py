"""JSON schemas of a row: checked, and described for the model (pure).

`rows.answer_check` checks answers with them.
"""

import json
from collections.abc import Iterator
from typing import Any

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


def is_free_text(schema: Schema | None, name: str) -> bool:
    """True for a string that the model was free to write."""
    if schema is None:
        return True
    inner = schema["properties"][name]
    return inner.get("type") == "string" and not {"enum", "const"} & inner.keys()


def field_names(schema: Schema | None) -> list[str]:
    """The fields of a row, in order."""
    return ["text"] if schema is None else list(schema["properties"])
