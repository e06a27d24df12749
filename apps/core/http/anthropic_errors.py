"""Errors in the shape of Anthropic's API, for programs that ask addresses below /v1/messages."""

from apps.core.schemas.json_types import JsonObject

ANTHROPIC = "/v1/messages"
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


def anthropic_error(status: int, message: str) -> JsonObject:
    """Return the JSON object of an error."""
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}
