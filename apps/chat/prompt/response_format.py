"""Structured output: from the editor or the API to what is stored and sent. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from apps.chat.errors import ChatError
from apps.core.schemas import json_schemas

MAX_CHARACTERS = 50_000


class BadResponseFormat(ChatError):
    code = "bad_response_format"


def parse_form(typed: str) -> dict[str, Any]:
    """Return the format for a schema from the editor; {} if it has no field: free text.

    Raises:
        BadSchema
    """
    if len(typed) > MAX_CHARACTERS:
        raise json_schemas.BadSchema(
            f"The schema is too long. The limit is {MAX_CHARACTERS:,} characters."
        )
    try:
        schema = json.loads(typed or "{}")
    except (ValueError, RecursionError) as error:
        raise json_schemas.BadSchema(f"The schema is not valid JSON: {error}.") from error
    if isinstance(schema, Mapping) and not schema.get("properties"):
        return {}
    closed = json_schemas.closed(json_schemas.checked(schema))
    described = {"name": "answer", "schema": closed, "strict": True}
    return {"type": "json_schema", "json_schema": described}


def check(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a format from the API, in the OpenAI API's shape; {} for free text.

    Raises:
        BadResponseFormat: it has another shape, or a schema that cannot be used.
    """
    try:
        return _checked(given)
    except json_schemas.BadSchema as error:
        raise BadResponseFormat(str(error)) from error


def _checked(given: Mapping[str, Any] | None) -> dict[str, Any]:
    if not given or given == {"type": "text"}:
        return {}
    if given == {"type": "json_object"}:
        return dict(given)
    described = given.get("json_schema")
    if given.get("type") != "json_schema" or not isinstance(described, Mapping):
        raise json_schemas.BadSchema(
            '`response_format` is {"type": "text"}, {"type": "json_object"} or '
            '{"type": "json_schema", "json_schema": {"name": "...", "schema": {...}}}.'
        )
    schema = json_schemas.checked(described.get("schema"))
    name = described.get("name")
    named = {"name": name[:64] if isinstance(name, str) and name else "answer"}
    strict = {"strict": described["strict"]} if isinstance(described.get("strict"), bool) else {}
    return {"type": "json_schema", "json_schema": {**named, "schema": schema, **strict}}


def schema_of(response_format: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a format; {} without one."""
    described = response_format.get("json_schema")
    found = described.get("schema") if isinstance(described, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}
