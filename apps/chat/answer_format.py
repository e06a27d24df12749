"""Answers as JSON with given fields: from the editor to what the server is asked. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from apps.core import json_schemas

MAX_CHARACTERS = 50_000


def from_form(typed: str) -> dict[str, Any]:
    """The format for a schema as the editor sends it; {} where it has no field: free text.

    Raises:
        BadSchema
    """
    if len(typed) > MAX_CHARACTERS:
        raise json_schemas.BadSchema(f"The schema is longer than {MAX_CHARACTERS:,} characters.")
    try:
        schema = json.loads(typed or "{}")
    except (ValueError, RecursionError) as error:
        raise json_schemas.BadSchema(f"The schema is no JSON: {error}.") from error
    if isinstance(schema, Mapping) and not schema.get("properties"):
        return {}
    closed = json_schemas.closed(json_schemas.checked(schema))
    described = {"name": "answer", "schema": closed, "strict": True}
    return {"type": "json_schema", "json_schema": described}


def schema_of(response_format: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a format, {} without one."""
    described = response_format.get("json_schema") or {}
    found: dict[str, Any] = described.get("schema") or {}
    return found
