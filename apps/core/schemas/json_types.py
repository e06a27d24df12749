"""Names for values that are free JSON. Pure."""

from pydantic import JsonValue as JsonValue

JsonObject = dict[str, JsonValue]
