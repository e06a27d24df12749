"""Errors in the shape of OpenAI's API, for programs that ask addresses below /v1/."""

from apps.core.schemas.json_types import JsonObject

OPENAI = "/v1/"


def openai_error(status: int, code: str, message: str, *, param: str | None = None) -> JsonObject:
    """Return the JSON object of an error."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
