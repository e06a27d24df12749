"""The check of `response_format` in requests."""

from typing import Any

from apps.chat.prompt import response_format
from apps.core.api import ApiError
from apps.core.schemas.json_schemas import BadSchema


def check_format(given: dict[str, Any] | None) -> dict[str, Any]:
    """Return a response format that can be stored; {} for free text.

    Raises:
        ApiError: 422, it cannot be used.
    """
    try:
        return response_format.check(given)
    except BadSchema as error:
        raise ApiError(422, "bad_response_format", str(error)) from error
