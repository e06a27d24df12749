"""Errors that the person or program behind a request can act on. Pure."""

from collections.abc import Sequence
from typing import TypedDict


class ErrorPlace(TypedDict):
    """One place of a request, and what is wrong there."""

    loc: Sequence[str | int]
    msg: str


class DomainError(Exception):
    """An error whose message is a sentence for the reader and tells them what to do.

    Routes of the API let it pass: one handler (workbench/api.py) answers with its status and code.
    Views catch it where the page shows it.
    """

    status: int = 422
    code: str = "invalid"
    errors: Sequence[ErrorPlace] = ()
    """Details for programs."""
    retry_after: float | None = None
    """Seconds until a repeated request may succeed; None where that is unknown."""
