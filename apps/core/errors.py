"""Errors that the person or program behind a request can act on."""

from collections.abc import Sequence
from typing import Any

from django.http import Http404


class DomainError(Exception):
    """An error whose message is a sentence for the reader and tells them what to do.

    Routes of the API let it pass: one handler (workbench/api.py) answers with its status and code.
    Views catch it where the page shows it.
    """

    status: int = 422
    code: str = "invalid"
    errors: Sequence[dict[str, Any]] = ()
    """Details for programs: places (`loc`) and messages (`msg`)."""
    retry_after: float | None = None
    """Seconds until a repeated request may succeed; None where that is unknown."""


class NotFound(DomainError, Http404):
    """An object that does not exist, or that belongs to someone else; a 404 page in views."""

    status = 404
    code = "not_found"

    def __init__(self, name: str) -> None:
        """
        Args:
            name: the kind of object, in lower case: "dataset".
        """
        super().__init__(f"No such {name}, or you do not have access to it.")
