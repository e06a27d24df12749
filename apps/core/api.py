"""What every router of the HTTP API shares: who asks, how errors look, how lists are cut."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from django.contrib.auth.models import User
from django.db import models
from django.http import HttpRequest
from ninja import Schema
from ninja.security import HttpBearer, SessionAuth

from apps.core.models import ApiKey

T = TypeVar("T")
M = TypeVar("M", bound=models.Model)
PAGE_LIMIT = 100


class ApiError(Exception):
    """An answer other than success. `code` is for programs, `detail` for people: what to do."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: list[dict[str, Any]] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = errors or []
        self.retry_after = retry_after


def not_found(what: str) -> ApiError:
    return ApiError(404, "not_found", f"No such {what}, or you do not have access to it.")


class BearerKey(HttpBearer):
    def authenticate(self, request: HttpRequest, token: str) -> User | None:
        user = ApiKey.user_of(token)
        if user is not None:
            request.user = user
        return user


class BrowserSession(SessionAuth):
    """The login of the browser. Ninja checks the CSRF token of every changing request."""


def owner(request: HttpRequest) -> User:
    """Who asks. The API lets nobody through unnamed."""
    assert isinstance(request.user, User)
    return request.user


class Page(Schema, Generic[T]):
    items: list[T]
    next: str | None = None


def page(
    rows: models.QuerySet[M],
    show: Callable[[M], Any],
    *,
    limit: int = PAGE_LIMIT,
    after: str | None = None,
    newest_first: bool = False,
) -> dict[str, Any]:
    """One page of a list in the order of primary keys; the cursor is the last key shown."""
    limit = max(1, min(limit, 1000))
    rows = rows.order_by("-pk" if newest_first else "pk")
    if after is not None:
        if not after.isdecimal():
            raise ApiError(
                400, "bad_cursor", "`after` must be the `next` value of an earlier page."
            )
        rows = rows.filter(**{"pk__lt" if newest_first else "pk__gt": int(after)})
    found = list(rows[: limit + 1])
    shown = found[:limit]
    return {
        "items": [show(row) for row in shown],
        "next": str(shown[-1].pk) if len(found) > limit else None,
    }
